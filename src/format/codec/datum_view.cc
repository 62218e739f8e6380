#include "format/codec/datum_view.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>

#include "forebay/error.hpp"

namespace forebay {
namespace {

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

// Protobuf takes tags and lengths of five bytes at most, other numbers of ten.
constexpr unsigned kShortVarint = 5;
constexpr unsigned kLongVarint = 10;

enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  std::uint32_t number = 0;
  std::uint32_t type = 0;
  std::uint64_t varint = 0;            // kVarint
  std::span<const std::byte> payload;  // the others

  bool is(FieldNumber wanted, WireType wire) const { return number == wanted && type == wire; }
};

// Cuts a value into fields, never looking past its end.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> value) : value_(value) {}

  bool at_end() const { return position_ == value_.size(); }

  WireField next() {
    const std::uint64_t tag = varint(kShortVarint);
    WireField field;
    field.number = static_cast<std::uint32_t>(tag >> 3);
    field.type = static_cast<std::uint32_t>(tag & 7);
    if (tag > std::numeric_limits<std::uint32_t>::max() || field.number == 0) {
      throw_corrupt("an impossible field number");
    }
    switch (field.type) {
      case kVarint:
        field.varint = varint();
        break;
      case kFixed64:
        field.payload = bytes(8);
        break;
      case kFixed32:
        field.payload = bytes(4);
        break;
      case kBytes:
        field.payload = bytes(varint(kShortVarint));
        break;
      default:
        throw_corrupt("an unknown wire type");
    }
    return field;
  }

  [[noreturn]] void throw_corrupt(const char* what) const {
    throw Error(
        ErrorKind::corrupt,
        fmt::format("not a Caffe Datum: {} before byte {} of {}", what, position_, value_.size()),
        "name what the values are with --codec");
  }

 private:
  std::uint64_t varint(unsigned most_bytes = kLongVarint) {
    std::uint64_t result = 0;
    for (unsigned i = 0; i < most_bytes; ++i) {
      if (at_end()) throw_corrupt("a number is cut off");
      const auto byte = std::to_integer<std::uint64_t>(value_[position_++]);
      if (i * 7 < 64) result |= (byte & 0x7f) << i * 7;
      if (byte < 0x80) return result;
    }
    throw_corrupt("a number of too many bytes");
  }

  std::span<const std::byte> bytes(std::uint64_t count) {
    if (count > value_.size() - position_) throw_corrupt("a field is longer than the value");
    const auto result = value_.subspan(position_, count);
    position_ += count;
    return result;
  }

  std::span<const std::byte> value_;
  std::size_t position_ = 0;
};

// Protocol Buffers define that an int32 is the low half of its varint.
std::int32_t as_int32(const WireField& field) { return static_cast<std::int32_t>(field.varint); }

bool holds_floats(const WireField& field) {
  return field.is(kFloatData, kFixed32) || field.is(kFloatData, kBytes);
}

}  // namespace

DatumView scan_datum(std::span<const std::byte> value) {
  DatumView view;
  FieldReader reader(value);
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
  FieldReader reader(value);
  std::size_t filled = 0;
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (!holds_floats(field)) continue;
    if (field.payload.size() > out.size() - filled)
      reader.throw_corrupt("more floats than counted");
    std::memcpy(out.data() + filled, field.payload.data(), field.payload.size());
    filled += field.payload.size();
  }
}

}  // namespace forebay
