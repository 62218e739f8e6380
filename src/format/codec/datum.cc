#include "format/codec/datum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "forebay/error.hpp"
#include "format/codec/wire.hpp"

namespace forebay {
namespace {

using namespace wire;

// Stored floats are little-endian and are copied as they lie.
static_assert(std::endian::native == std::endian::little);

enum FieldNumber : std::uint32_t {
  kChannels = 1,
  kHeight = 2,
  kWidth = 3,
  kData = 4,
  kLabel = 5,
  kFloatData = 6,
  kEncoded = 7,
};

/// A value, cut into fields.
struct DatumReader : WireReader {
  explicit DatumReader(std::span<const std::byte> value)
      : WireReader(value, "a Caffe Datum", "name what the values are with --codec") {}
};

// Protocol Buffers define that an int32 is the low half of its varint.
std::int32_t as_int32(const WireField& field) { return static_cast<std::int32_t>(field.varint); }

bool holds_floats(const WireField& field) {
  return field.is(kFloatData, kFixed32) || field.is(kFloatData, kBytes);
}

void put_varint(std::string& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
}

// Negative numbers take ten bytes, as if they had 64 bits.
void put_number(std::string& out, FieldNumber field, std::int32_t number) {
  put_varint(out, field << 3 | kVarint);
  put_varint(out, static_cast<std::uint64_t>(std::int64_t{number}));
}

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::int32_t>::max();

std::int32_t side(std::uint32_t size) {
  if (size > kMostBytes) {
    throw Error(ErrorKind::usage, fmt::format("an image side of {} does not fit a Datum", size));
  }
  return static_cast<std::int32_t>(size);
}

// In the order of the fields' numbers, like protobuf.
std::string written(const ImageShape& shape, std::span<const std::byte> data,
                    std::optional<std::int32_t> label, bool encoded) {
  constexpr std::size_t kMostAround = 64;
  if (data.size() > kMostBytes - kMostAround) {
    throw Error(ErrorKind::usage, fmt::format("{} bytes do not fit a Datum", data.size()));
  }
  std::string out;
  out.reserve(data.size() + kMostAround);
  put_number(out, kChannels, side(shape.channels));
  put_number(out, kHeight, side(shape.height));
  put_number(out, kWidth, side(shape.width));
  put_varint(out, kData << 3 | kBytes);
  put_varint(out, data.size());
  out.append(reinterpret_cast<const char*>(data.data()), data.size());
  if (label) put_number(out, kLabel, *label);
  if (encoded) put_number(out, kEncoded, 1);
  return out;
}

}  // namespace

DatumView scan_datum(std::span<const std::byte> value) {
  DatumView view;
  DatumReader reader(value);
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (field.is(kChannels, kVarint)) view.channels = as_int32(field);
    if (field.is(kHeight, kVarint)) view.height = as_int32(field);
    if (field.is(kWidth, kVarint)) view.width = as_int32(field);
    if (field.is(kData, kBytes)) view.data = field.payload;
    if (field.is(kLabel, kVarint)) view.label = as_int32(field);
    if (field.is(kEncoded, kVarint)) view.encoded = field.varint != 0;
    if (holds_floats(field)) {
      if (field.payload.size() % 4 != 0) reader.throw_corrupt("a list of floats ends in one");
      view.floats += field.payload.size() / 4;
    }
  }
  return view;
}

void copy_floats(std::span<const std::byte> value, std::span<std::byte> out) {
  DatumReader reader(value);
  std::size_t filled = 0;
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (!holds_floats(field)) continue;
    if (field.payload.size() > out.size() - filled)
      reader.throw_corrupt("more floats than counted");
    std::ranges::copy(field.payload, out.begin() + static_cast<std::ptrdiff_t>(filled));
    filled += field.payload.size();
  }
}

std::string make_datum(const ImageShape& shape, std::span<const std::byte> pixels,
                       std::optional<std::int32_t> label) {
  if (pixels.size() != shape.bytes()) {
    throw Error(ErrorKind::usage,
                fmt::format("{} bytes are not an image of {}", pixels.size(), to_string(shape)));
  }
  return written(shape, pixels, label, false);
}

std::string make_encoded_datum(const ImageShape& shape, std::span<const std::byte> file,
                               std::optional<std::int32_t> label) {
  return written(shape, file, label, true);
}

}  // namespace forebay
