// Any bytes as TFRecord files of Examples: samples whose parts lie in memory, or an Error. Fuzzers
// do not find checksums: every other input gets them right.
#include <cstring>

#include "forebay/error.hpp"
#include "format/tfrecord/tfrecord.hpp"
#include "fuzz/read_all.hpp"

namespace forebay {
namespace {

void mend_checksums(std::vector<std::byte>& bytes) {
  constexpr std::size_t kLength = 8;
  constexpr std::size_t kHeader = 12;
  const auto mend = [&](std::size_t from, std::size_t count) {
    const std::uint32_t crc = tfrecord::masked_crc32c(std::span(bytes).subspan(from, count));
    std::memcpy(bytes.data() + from + count, &crc, sizeof crc);
  };
  for (std::size_t at = 0; at + kHeader + 4 <= bytes.size();) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    const std::uint64_t most = bytes.size() - at - kHeader - 4;
    length = std::min<std::uint64_t>(length % 1024, most);
    std::memcpy(bytes.data() + at, &length, sizeof length);
    mend(at, kLength);
    mend(at + kHeader, length);
    at += kHeader + length + 4;
  }
}

}  // namespace
}  // namespace forebay

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace forebay;
  const auto* const first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first, first + size);
  if (size % 4 != 0) mend_checksums(bytes);
  try {
    const auto set = tfrecord::open_records("fuzz.tfrecord", {memory_file("fuzz", bytes)}, {});
    read_all(*set);
  } catch (const Error& error) {
    require(std::strchr(error.what(), '\n') == nullptr);
  }
  return 0;
}
