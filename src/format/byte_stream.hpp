// Numbers to bytes and back, for sidecars: little-endian, and LEB128 for those that are mostly
// small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace forebay {

/// The same bytes.
inline std::string_view chars_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Throws corrupt. Apart from load(), to keep that small enough to be inlined.
[[noreturn]] void refuse_load();

/// A number at `offset` of what a file has.
template <typename T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) refuse_load();
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

class ByteWriter {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_integral_v<T>);
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
  }
  void varint(std::uint64_t value);
  /// A difference of two numbers, modulo 2^64; short when it is near 0 on either side.
  void difference(std::uint64_t value);
  void raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  /// Length, then bytes.
  void block(std::span<const std::byte> bytes);

  std::size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }
  void clear() { bytes_.clear(); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what a ByteWriter wrote. Every method throws corrupt when the bytes do not hold it.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  T number() {
    static_assert(std::is_integral_v<T>);
    T value;
    std::memcpy(&value, raw(sizeof value).data(), sizeof value);
    return value;
  }
  /// Without a call for numbers of one and two bytes, as most sizes and distances are.
  std::uint64_t varint() {
    const std::size_t bytes = rest_.size() >= 2 && rest_[0] >= std::byte{128} ? 2 : 1;
    if (!rest_.empty() && rest_[bytes - 1] < std::byte{128}) {
      auto value = std::to_integer<std::uint64_t>(rest_[0] & std::byte{127});
      if (bytes == 2) value |= std::to_integer<std::uint64_t>(rest_[1]) << 7;
      rest_ = rest_.subspan(bytes);
      return value;
    }
    return long_varint();
  }
  /// At most `most`, or it throws.
  std::uint64_t varint(std::uint64_t most);
  std::uint64_t difference() {
    const std::uint64_t folded = varint();
    return (folded >> 1) ^ (~(folded & 1) + 1);
  }
  std::span<const std::byte> raw(std::uint64_t size) {
    if (size > rest_.size()) end_early();
    const auto bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  std::span<const std::byte> block() { return raw(varint()); }
  std::span<const std::byte> rest() const { return rest_; }
  /// Throws unless everything was read.
  void end() const;

 private:
  std::uint64_t long_varint();
  [[noreturn]] static void end_early();

  std::span<const std::byte> rest_;
};

/// Reads numbers, each with a name and the limits that it must keep. `bytes` and `what` (named in
/// messages) outlive it. All methods throw corrupt.
class NumberReader {
 public:
  NumberReader(std::span<const std::byte> bytes, const char* what) : in_(bytes), what_(what) {}

  std::uint64_t get(std::uint64_t least, std::uint64_t most, const char* name);
  bool get_flag(const char* name) { return get(0, 1, name) != 0; }
  std::string get_text(std::size_t longest, const char* name);
  /// Throws unless all was read.
  void end() const;

 private:
  template <typename Read>
  auto read(Read&& read) const;
  [[noreturn]] void refuse(const std::string& fault) const;

  ByteReader in_;
  const char* what_;
};

}  // namespace forebay
