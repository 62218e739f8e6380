// Any bytes as LZF, into room of any size: bytes that fit, or an Error.
#include <cstdlib>
#include <vector>

#include "forebay/error.hpp"
#include "format/hdf5/chunked_field.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace forebay;
  if (size < 2) return 0;
  std::vector<std::byte> out(data[0] + 256U * data[1]);
  try {
    // A copy, so that a byte read behind its end is found.
    const auto all = std::as_bytes(std::span(data, size)).subspan(2);
    const std::vector<std::byte> in(all.begin(), all.end());
    if (hdf5::decode_lzf(in, out) > out.size()) std::abort();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) std::abort();
  }
  return 0;
}
