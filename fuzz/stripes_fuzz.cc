// Any bytes as what Lustre says of a file: parts of it, ascending, of stripes that exist, or
// nothing.
#include <cstdlib>
#include <vector>

#include "storage/stripes.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace forebay;
  const auto all = std::as_bytes(std::span(data, size));
  // A copy, so that a byte read behind its end is found.
  const std::vector<std::byte> answer(all.begin(), all.end());
  std::uint64_t end = 0;
  for (const StripedRange& range : parse_lustre_layout(answer)) {
    const bool in_order = range.begin >= end && range.begin < range.end;
    if (!in_order || range.stripes.bytes == 0 || range.stripes.servers == 0) std::abort();
    end = range.end;
  }
  return 0;
}
