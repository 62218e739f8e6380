// Numbers and texts as bytes of a message between ranks, which have the same byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "forebay/error.hpp"

namespace forebay {

class MessageWriter {
 public:
  template <typename T>
  requires std::is_trivially_copyable_v<T> && std::is_scalar_v<T>
  void number(T value) {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), first, first + sizeof(T));
  }
  void text(std::string_view value) {
    number(std::uint64_t{value.size()});
    const auto* first = reinterpret_cast<const std::byte*>(value.data());
    bytes_.insert(bytes_.end(), first, first + value.size());
  }
  void numbers(std::span<const std::uint64_t> values) {
    number(std::uint64_t{values.size()});
    for (const std::uint64_t value : values) number(value);
  }

  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Throws communication where the message is shorter than what is read from it.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  requires std::is_trivially_copyable_v<T> && std::is_scalar_v<T> T number() {
    T value;
    std::memcpy(&value, next(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string text() {
    const auto bytes = next(number<std::uint64_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::vector<std::uint64_t> numbers() {
    const auto count = number<std::uint64_t>();
    if (count > rest_.size() / sizeof(std::uint64_t)) next(rest_.size() + 1);
    std::vector<std::uint64_t> values(count);
    for (std::uint64_t& value : values) value = number<std::uint64_t>();
    return values;
  }

  bool empty() const { return rest_.empty(); }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> next(std::size_t bytes) {
    if (bytes > rest_.size()) {
      throw Error(ErrorKind::communication, "a message of another rank is cut off",
                  "start all ranks with the same version of Forebay");
    }
    const auto first = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return first;
  }

  std::span<const std::byte> rest_;
};

}  // namespace forebay
