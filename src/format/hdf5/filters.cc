#include "format/hdf5/chunked_field.hpp"

#include <fmt/format.h>
#include <hdf5.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "core/copy_values.hpp"
#include "core/non_copyable.hpp"
#include "forebay/error.hpp"

#ifdef FOREBAY_SZIP
extern "C" {  // which the header of libaec leaves out
#include <szlib.h>
}
#endif

namespace forebay::hdf5 {
namespace {

// The best that deflate can do, by its format: 258 bytes for two bits.
constexpr std::uint64_t kMaxDeflateRatio = 1032;
// A filter before a compressing one may add a little: a checksum, or what did not compress.
constexpr std::uint64_t kSlack = 1024;
// Three bytes of LZF stand for 264 at most.
constexpr std::uint64_t kMaxLzfRatio = 88;
constexpr int kLzfFilter = 32000;  // as the HDF Group has registered it
// szip spends some bits on a run of 64 blocks of 32 numbers that are all alike.
constexpr std::uint64_t kMaxSzipRatio = 16384;

[[noreturn]] void damaged(const std::string& what) {
  throw Error(ErrorKind::corrupt, "a chunk does not decode: " + what,
              "the file is damaged: restore it from a copy");
}

/// Owns zlib's state, also when something throws.
class Inflate : private NonCopyable {
 public:
  Inflate() {
    if (inflateInit(&stream_) != Z_OK) throw std::bad_alloc();
  }
  ~Inflate() { inflateEnd(&stream_); }

  /// Returns the bytes produced.
  std::size_t run(std::span<const std::byte> in, std::span<std::byte> out) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int code = inflate(&stream_, Z_FINISH);
    if (code == Z_STREAM_END) return out.size() - stream_.avail_out;
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    damaged(stream_.msg != nullptr   ? stream_.msg
            : stream_.avail_out == 0 ? "it is longer than its shape says"
                                     : "its compressed bytes end too early");
  }

 private:
  z_stream stream_ = {};
};

/// The values of one number lie apart, all first bytes first; this brings them together.
void unshuffle(std::span<const std::byte> in, std::size_t width, std::span<std::byte> out) {
  const std::size_t count = in.size() / width;
  for (std::size_t byte = 0; byte < width; ++byte) {
    const std::byte* from = in.data() + byte * count;
    std::byte* to = out.data() + byte;
    for (std::size_t i = 0; i < count; ++i) to[i * width] = from[i];
  }
  const std::size_t whole = count * width;
  copy_values(in.subspan(whole), out.subspan(whole));
}

// Fletcher's checksum as the filter writes it (Fletcher 1982, over 16-bit words): two running sums
// of big-endian words modulo 65535. A sum stays below 2^32 for 360 words when it starts below 2^17,
// so it is reduced that often.
constexpr std::size_t kWordsBetweenFolds = 360;

std::uint32_t fold(std::uint32_t sum) { return (sum & 0xffffU) + (sum >> 16); }

std::uint32_t fletcher32(std::span<const std::byte> data) {
  std::uint32_t simple = 0;
  std::uint32_t weighted = 0;
  while (data.size() >= 2) {
    const std::size_t words = std::min(data.size() / 2, kWordsBetweenFolds);
    for (std::size_t i = 0; i < words; ++i) {
      simple += std::to_integer<std::uint32_t>(data[2 * i]) << 8 |
                std::to_integer<std::uint32_t>(data[2 * i + 1]);
      weighted += simple;
    }
    simple = fold(simple);
    weighted = fold(weighted);
    data = data.subspan(2 * words);
  }
  if (!data.empty()) {
    simple = fold(simple + (std::to_integer<std::uint32_t>(data[0]) << 8));
    weighted = fold(weighted + simple);
  }
  return fold(weighted) << 16 | fold(simple);
}

std::uint32_t swap_in_halves(std::uint32_t sum) {
  return (sum & 0x00ff00ffU) << 8 | (sum & 0xff00ff00U) >> 8;
}

/// Whether `stored`, the four bytes behind `data`, are its checksum. Old libraries on big-endian
/// machines wrote the bytes of both halves swapped (before HDF5 1.6.3); that is accepted, too.
bool matches_fletcher32(std::span<const std::byte> data, std::span<const std::byte, 4> stored) {
  std::uint32_t expected = 0;
  for (std::size_t i = 4; i-- > 0;) {
    expected = expected << 8 | std::to_integer<std::uint32_t>(stored[i]);
  }
  const std::uint32_t sum = fletcher32(data);
  return expected == sum || expected == swap_in_halves(sum);
}

// A chunk starts with its decoded size, little-endian.
constexpr std::size_t kSizeBytes = 4;

/// Bytes that a chunk says it decodes to.
std::uint64_t szip_size(std::span<const std::byte> stored) {
  if (stored.size() < kSizeBytes) damaged("its size is missing");
  std::uint64_t size = 0;
  for (std::size_t i = kSizeBytes; i-- > 0;) {
    size = size << 8 | std::to_integer<std::uint64_t>(stored[i]);
  }
  return size;
}

// szip is decoded by libaec where Forebay is built with it.
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
  throw Error(ErrorKind::unsupported, "its chunks are compressed with szip",
              std::string("build Forebay again with libaec installed, or ") + kRewrite);
}

void decode_szip(std::span<const std::uint32_t> values, std::span<const std::byte>,
                 std::span<std::byte>) {
  require_szip(values);
}

#endif

/// Where the next filter may write: never the vector that its input lies in.
std::vector<std::byte>& free_buffer(std::span<const std::byte> input, DecodeSpace& space) {
  return input.data() == space.first.data() ? space.second : space.first;
}

std::span<std::byte> room(std::vector<std::byte>& buffer, std::uint64_t bytes) {
  if (buffer.size() < bytes) buffer.resize(bytes);
  return std::span(buffer).first(bytes);
}

std::span<const std::byte> undo_deflate(std::span<const std::byte> in, std::uint64_t most,
                                        DecodeSpace& space) {
  const auto out = room(free_buffer(in, space), std::min(most, in.size() * kMaxDeflateRatio));
  return out.first(Inflate().run(in, out));
}

std::span<const std::byte> undo_shuffle(const Filter& filter, std::span<const std::byte> in,
                                        DecodeSpace& space) {
  const std::size_t width = filter.values[0];
  if (width <= 1 || in.size() < width) return in;
  const auto out = room(free_buffer(in, space), in.size());
  unshuffle(in, width, out);
  return out;
}

std::span<const std::byte> undo_fletcher32(std::span<const std::byte> in) {
  if (in.size() < 4) damaged("its checksum is missing");
  const auto data = in.first(in.size() - 4);
  if (!matches_fletcher32(data, in.last<4>())) damaged("its checksum does not match");
  return data;
}

std::span<const std::byte> undo_szip(const Filter& filter, std::span<const std::byte> in,
                                     std::uint64_t most, DecodeSpace& space) {
  const std::uint64_t size = szip_size(in);
  if (size > most || size > in.size() * kMaxSzipRatio) damaged("it is longer than it can be");
  const auto out = room(free_buffer(in, space), size);
  decode_szip(filter.values, in, out);
  return out;
}

std::span<const std::byte> undo_lzf(std::span<const std::byte> in, std::uint64_t most,
                                    DecodeSpace& space) {
  const auto out = room(free_buffer(in, space), std::min(most, in.size() * kMaxLzfRatio));
  return out.first(decode_lzf(in, out));
}

}  // namespace

Filter make_filter(int id, const std::string& name, std::vector<std::uint32_t> values) {
  switch (id) {
    case H5Z_FILTER_DEFLATE:
      return {FilterKind::deflate, std::move(values)};
    case H5Z_FILTER_SHUFFLE:
      if (values.empty()) damaged("the shuffle filter does not say how wide numbers are");
      return {FilterKind::shuffle, std::move(values)};
    case H5Z_FILTER_FLETCHER32:
      return {FilterKind::fletcher32, {}};
    case H5Z_FILTER_SZIP:
      require_szip(values);
      return {FilterKind::szip, std::move(values)};
    case kLzfFilter:
      return {FilterKind::lzf, {}};
    default:
      throw Error(ErrorKind::unsupported,
                  fmt::format("its chunks passed filter {} ({}), which Forebay does not decode", id,
                              name.empty() ? "without a name" : name),
                  kRewrite);
  }
}

std::string describe(std::span<const Filter> filters) {
  std::string text;
  for (const Filter& filter : filters) {
    if (!text.empty()) text += ", ";
    switch (filter.kind) {
      case FilterKind::deflate:
        text += filter.values.empty() ? "deflate" : fmt::format("deflate {}", filter.values[0]);
        break;
      case FilterKind::shuffle:
        text += "shuffle";
        break;
      case FilterKind::fletcher32:
        text += "fletcher32";
        break;
      case FilterKind::szip:
        text += "szip";
        break;
      case FilterKind::lzf:
        text += "lzf";
        break;
    }
  }
  return text;
}

std::span<const std::byte> undo_filters(std::span<const Filter> filters, std::uint32_t skipped,
                                        std::span<const std::byte> stored,
                                        std::uint64_t chunk_bytes, DecodeSpace& space) {
  const std::uint64_t most = chunk_bytes + chunk_bytes / 1000 + kSlack;
  std::span<const std::byte> bytes = stored;
  for (std::size_t i = filters.size(); i-- > 0;) {
    if (i < 32 && ((skipped >> i) & 1U) != 0) continue;
    switch (filters[i].kind) {
      case FilterKind::deflate:
        bytes = undo_deflate(bytes, most, space);
        break;
      case FilterKind::shuffle:
        bytes = undo_shuffle(filters[i], bytes, space);
        break;
      case FilterKind::fletcher32:
        bytes = undo_fletcher32(bytes);
        break;
      case FilterKind::szip:
        bytes = undo_szip(filters[i], bytes, most, space);
        break;
      case FilterKind::lzf:
        bytes = undo_lzf(bytes, most, space);
        break;
    }
  }
  if (bytes.size() == chunk_bytes) return bytes;
  damaged(fmt::format("it has {} bytes where its shape needs {}", bytes.size(), chunk_bytes));
}

}  // namespace forebay::hdf5
