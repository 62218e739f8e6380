// The wire format of Protocol Buffers, as far as reading a few known messages needs it.
//
//   message := field*      field := tag payload        tag := varint(number << 3 | wire type)
//   wire types: 0 varint, 1 eight bytes, 2 varint length + bytes, 3 group, 4 its end, 5 four bytes
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>

#include "forebay/error.hpp"

namespace forebay::wire {

// Protobuf takes tags and lengths of five bytes at most, other numbers of ten.
inline constexpr unsigned kShortVarint = 5;
inline constexpr unsigned kLongVarint = 10;

enum WireType : std::uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kGroup = 3,
  kGroupEnd = 4,
  kFixed32 = 5,
};

// Protobuf's limit to groups inside of groups.
inline constexpr int kMostGroups = 100;

struct WireField {
  std::uint32_t number = 0;
  std::uint32_t type = 0;
  std::uint64_t varint = 0;            // kVarint
  std::span<const std::byte> payload;  // the others

  bool is(std::uint32_t wanted, WireType wire) const { return number == wanted && type == wire; }
};

/// Cuts a value into fields, never looking past its end. `what` it is and the `remedy` where it is
/// not are texts that live on.
class WireReader {
 public:
  WireReader(std::span<const std::byte> value, const char* what, const char* remedy)
      : value_(value), what_(what), remedy_(remedy) {}

  bool at_end() const { return position_ == value_.size(); }

  /// A group counts as one field, and what is in it as nothing.
  WireField next() {
    const WireField field = piece();
    if (field.type == kGroup) skip_group(field.number, kMostGroups);
    if (field.type == kGroupEnd) throw_corrupt("a group ends that has not begun");
    return field;
  }

  [[noreturn]] void throw_corrupt(const char* what) const {
    throw Error(
        ErrorKind::corrupt,
        fmt::format("not {}: {} before byte {} of {}", what_, what, position_, value_.size()),
        remedy_);
  }

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

 private:
  /// A field, or the begin or the end of a group.
  WireField piece() {
    // Protobuf drops what a tag has above its 32 bits.
    const auto tag = static_cast<std::uint32_t>(varint(kShortVarint));
    WireField field;
    field.number = tag >> 3;
    field.type = tag & 7;
    if (field.number == 0) throw_corrupt("an impossible field number");
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
      case kGroup:
      case kGroupEnd:
        break;
      default:
        throw_corrupt("an unknown wire type");
    }
    return field;
  }

  void skip_group(std::uint32_t number, int deepest) {
    if (deepest == 0) throw_corrupt("groups in too many groups");
    WireField field = piece();
    for (; field.type != kGroupEnd; field = piece()) {
      if (field.type == kGroup) skip_group(field.number, deepest - 1);
    }
    if (field.number != number) throw_corrupt("a group ends that has not begun");
  }

  std::span<const std::byte> bytes(std::uint64_t count) {
    if (count > value_.size() - position_) throw_corrupt("a field is longer than the value");
    const auto result = value_.subspan(position_, count);
    position_ += count;
    return result;
  }

  std::span<const std::byte> value_;
  const char* what_;
  const char* remedy_;
  std::size_t position_ = 0;
};

}  // namespace forebay::wire
