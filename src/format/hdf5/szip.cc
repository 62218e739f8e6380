#include "format/hdf5/szip.hpp"

#include <fmt/format.h>

#include "forebay/error.hpp"

#ifdef FOREBAY_SZIP
extern "C" {  // which the header of libaec leaves out
#include <szlib.h>
}
#endif

namespace forebay::hdf5 {
namespace {

// A chunk starts with its decoded size, little-endian.
constexpr std::size_t kSizeBytes = 4;

[[noreturn]] void damaged(const std::string& what) {
  throw Error(ErrorKind::corrupt, "a chunk does not decode: " + what,
              "the file is damaged: restore it from a copy");
}

}  // namespace

std::uint64_t szip_size(std::span<const std::byte> stored) {
  if (stored.size() < kSizeBytes) damaged("its size is missing");
  std::uint64_t size = 0;
  for (std::size_t i = kSizeBytes; i-- > 0;) {
    size = size << 8 | std::to_integer<std::uint64_t>(stored[i]);
  }
  return size;
}

#ifdef FOREBAY_SZIP

// The filter's parameters, in the order in which the file has them.
enum SzipValue : std::size_t { kOptions, kBlockPixels, kPixelBits, kLinePixels, kValues };

void require_szip(std::span<const std::uint32_t> values) {
  if (values.size() >= kValues) {
    const std::uint32_t bits = values[kPixelBits];
    const std::uint32_t block = values[kBlockPixels];
    const bool bits_fit = (bits >= 1 && bits <= 32) || bits == 64;
    const bool block_fits = block >= 2 && block <= SZ_MAX_PIXELS_PER_BLOCK && block % 2 == 0;
    const bool line_fits = values[kLinePixels] >= 1 &&
                           values[kLinePixels] <= SZ_MAX_BLOCKS_PER_SCANLINE * std::uint64_t{block};
    if (bits_fit && block_fits && line_fits) return;
  }
  damaged("the parameters of its szip filter are impossible");
}

void decode_szip(std::span<const std::uint32_t> values, std::span<const std::byte> stored,
                 std::span<std::byte> out) {
  SZ_com_t parameters{.options_mask = static_cast<int>(values[kOptions]),
                      .bits_per_pixel = static_cast<int>(values[kPixelBits]),
                      .pixels_per_block = static_cast<int>(values[kBlockPixels]),
                      .pixels_per_scanline = static_cast<int>(values[kLinePixels])};
  const auto body = stored.subspan(kSizeBytes);
  std::size_t size = out.size();
  const int code =
      SZ_BufftoBuffDecompress(out.data(), &size, body.data(), body.size(), &parameters);
  if (code != SZ_OK || size != out.size()) {
    damaged(
        fmt::format("libaec stopped with code {} after {} of {} bytes", code, size, out.size()));
  }
}

#else

void require_szip(std::span<const std::uint32_t>) {
  throw Error(
      ErrorKind::unsupported, "its chunks are compressed with szip",
      "build Forebay again with libaec installed, or write the file again with deflate, for "
      "example 'h5repack -f GZIP=4 IN OUT'");
}

void decode_szip(std::span<const std::uint32_t> values, std::span<const std::byte>,
                 std::span<std::byte>) {
  require_szip(values);
}

#endif

}  // namespace forebay::hdf5
