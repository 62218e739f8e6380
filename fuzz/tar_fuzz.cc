// Any bytes as a tar archive: samples whose parts lie inside the file, or an Error.
#include <cstdio>
#include <cstring>
#include <vector>

#include "forebay/error.hpp"
#include "format/tar/tar.hpp"
#include "fuzz/read_all.hpp"

namespace forebay {
namespace {

// Where a header may be. Fuzzers do not find checksums: every other input gets them right.
void mend_checksums(std::vector<std::byte>& bytes) {
  for (std::size_t at = 0; at + tar::kBlock <= bytes.size(); at += tar::kBlock) {
    const auto block = std::span(bytes).subspan(at, tar::kBlock);
    if (std::memcmp(block.data() + 257, "ustar", 5) != 0) continue;
    std::memset(block.data() + 148, ' ', 8);
    unsigned sum = 0;
    for (const std::byte byte : block) sum += std::to_integer<unsigned>(byte);
    std::snprintf(reinterpret_cast<char*>(block.data()) + 148, 8, "%06o", sum);
  }
}

void open_and_read(std::span<const std::byte> bytes) {
  DataFiles files{memory_file("fuzz.tar", bytes)};
  FoundMembers found;
  tar::find_members(*files[0], 0, found);
  const MemberSet set("fuzz.tar", "tar", std::move(files), std::move(found).choose({}, "fuzz.tar"));
  require(read_all(set) <= set.facts().value_bytes);
}

}  // namespace
}  // namespace forebay

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace forebay;
  const auto* const first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first, first + size);
  if (size % 2 == 0) mend_checksums(bytes);
  try {
    open_and_read(bytes);
  } catch (const Error& error) {
    require(std::strchr(error.what(), '\n') == nullptr);
  }
  return 0;
}
