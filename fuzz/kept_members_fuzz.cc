// Any bytes as a kept index of members, with and without a digest that fits: samples that lie in
// the files, or an Error.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "forebay/error.hpp"
#include "format/kept_members.hpp"

namespace forebay {
namespace {

constexpr std::size_t kFileBytes = 4096;

void require(bool condition) {
  if (!condition) std::abort();
}

void use(FoundMembers found) {
  static const std::vector<std::byte> content(kFileBytes);
  DataFiles files{memory_file("a", content), memory_file("b", content)};
  const MemberSet data("fuzz", "tar", std::move(files), std::move(found).choose({}, "fuzz"));
  for (std::uint64_t id = 0; id < data.facts().entries && id < 1000; ++id) {
    const auto plan = data.plan({&id, 1});
    for (const FileExtent& extent : plan->extents()) {
      require(extent.file < 2 && extent.offset <= kFileBytes);
      require(extent.length <= kFileBytes - extent.offset);
    }
  }
}

}  // namespace
}  // namespace forebay

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace forebay;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    if (size % 8 == 0) {
      use(from_kept_bytes(bytes, "identity", 2));
    } else {
      ByteReader in(bytes);
      use(FoundMembers::read(in, 2));
    }
  } catch (const Error& error) {
    require(std::strchr(error.what(), '\n') == nullptr);
  }
  return 0;
}
