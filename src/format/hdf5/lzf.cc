// LZF, the filter that h5py brings along (number 32000 of the HDF5 registry).
//
//   000LLLLL                     L + 1 bytes follow as they are
//   LLLooooo oooooooo            L + 2 bytes from o + 1 bytes back, 1 <= L <= 6
//   111ooooo LLLLLLLL oooooooo   the same of L + 9 bytes
//
// What is copied may reach into what it makes: then it repeats.
#include <algorithm>
#include <cstring>

#include "forebay/error.hpp"
#include "format/hdf5/chunked_field.hpp"

namespace forebay::hdf5 {
namespace {

[[noreturn]] void damaged(const char* what) {
  throw Error(ErrorKind::corrupt, std::string("a chunk does not decode: ") + what,
              "the file is damaged: restore it from a copy");
}

constexpr std::size_t kLongest = 7;  // lengths of three bits that another byte goes on with

}  // namespace

std::size_t decode_lzf(std::span<const std::byte> in, std::span<std::byte> out) {
  std::size_t at = 0;
  std::size_t made = 0;
  const auto next = [&] {
    if (at == in.size()) damaged("its LZF bytes end too early");
    return std::to_integer<std::size_t>(in[at++]);
  };
  while (at < in.size()) {
    const std::size_t control = next();
    std::size_t length = control >> 5;
    if (length == 0) {
      length = control + 1;
      if (length > in.size() - at) damaged("its LZF bytes end too early");
      if (length > out.size() - made) damaged("its LZF bytes are longer than its shape says");
      std::memcpy(out.data() + made, in.data() + at, length);
      at += length;
      made += length;
      continue;
    }
    if (length == kLongest) length += next();
    length += 2;
    const std::size_t back = ((control & 31) << 8 | next()) + 1;
    if (back > made) damaged("its LZF bytes refer to what is before the first");
    if (length > out.size() - made) damaged("its LZF bytes are longer than its shape says");
    for (std::size_t i = 0; i < length; ++i) out[made + i] = out[made + i - back];
    made += length;
  }
  return made;
}

}  // namespace forebay::hdf5
