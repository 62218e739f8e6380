// Messages between the helper threads of ranks: what is the same over every communicator, and what
// they are made of. Ranks have the same byte order.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"

namespace forebay {

/// The longest message that Communicator::send takes: below the limit of MPI's 32-bit counts.
inline constexpr std::size_t kLongestMessage = std::size_t{1} << 30;

/// Throws usage when a message of `bytes` is too long to send.
void require_sendable(std::size_t bytes);

/// Waits for the next message of rank `from`, in growing steps and without burning a core. Empty
/// when `give_up` said so. `what` completes "waited 600 s for ...".
/// Throws communication when none has come within `limit`. Local.
std::optional<std::vector<std::byte>> receive(Communicator& comm, int from,
                                              std::chrono::milliseconds limit,
                                              const GiveUp& give_up, const std::string& what);

/// A counter that works wherever messages do: rank 0 answers, see served_counter.cc. `comm` belongs
/// to it alone; an answer may take `limit`. `why` completes "answered by rank 0: ".
std::unique_ptr<SharedCounter> served_counter(std::shared_ptr<Communicator> comm,
                                              std::chrono::milliseconds limit, std::string why);

/// `value` as a message. Valid as long as `value` is.
template <typename T>
requires std::is_trivially_copyable_v<T> std::span<const std::byte> message_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// Throws communication: `message`, which is about `about`, is none of `bytes` bytes.
[[noreturn]] void refuse_message(std::span<const std::byte> message, std::string_view about,
                                 std::size_t bytes);

/// The value that was sent as `message`. Throws communication when it has another length.
template <typename T>
requires std::is_trivially_copyable_v<T> T value_in(std::span<const std::byte> message,
                                                    std::string_view about) {
  T value;
  if (message.size() != sizeof(value)) refuse_message(message, about, sizeof(value));
  std::memcpy(&value, message.data(), sizeof(value));
  return value;
}

/// Writes `value` at the front of `to`, which then is what follows it.
template <typename T>
requires std::is_trivially_copyable_v<T>
void put_value(std::span<std::byte>& to, const T& value) {
  std::memcpy(to.data(), &value, sizeof(value));
  to = to.subspan(sizeof(value));
}

// Messages that are more than one value: numbers, texts, lists, maps, and structures of them. What
// is sent of a structure is named once, for both ways:
//
//   auto sent(Is<Signature> auto& one) { return std::tie(one.operation, one.root); }

/// Of the type, constant or not.
template <typename T, typename Type>
concept Is = std::is_same_v<std::remove_const_t<T>, Type>;

/// One value after the other.
class MessageWriter {
 public:
  template <typename... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  template <typename T>
  void put(const T& value) {
    if constexpr (std::is_scalar_v<T>) {
      const auto bytes = message_of(value);
      bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    } else if constexpr (requires { value.size(); }) {
      put(std::uint64_t{value.size()});
      for (const auto& one : value) put(one);
    } else if constexpr (requires { value.second; }) {
      (*this)(value.first, value.second);
    } else {
      std::apply(*this, sent(value));
    }
  }

  std::vector<std::byte> bytes_;
};

/// Throws communication where the message is shorter than what is read from it.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  /// Values that are new.
  template <typename... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  template <typename T>
  void get(T& value) {
    if constexpr (std::is_scalar_v<T>) {
      std::memcpy(&value, next(sizeof(T)).data(), sizeof(T));
    } else if constexpr (requires { typename T::mapped_type; }) {
      for (auto left = count(); left > 0; --left) {
        typename T::key_type key;
        get(key);
        get(value[std::move(key)]);
      }
    } else if constexpr (requires { value.size(); }) {
      for (auto left = count(); left > 0; --left) {
        typename T::value_type one{};
        get(one);
        value.push_back(std::move(one));
      }
    } else {
      std::apply(*this, sent(value));
    }
  }

  std::uint64_t count() {
    std::uint64_t count = 0;
    get(count);
    return count;
  }

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

template <typename... Values>
std::vector<std::byte> encode(const Values&... values) {
  MessageWriter writer;
  writer(values...);
  return writer.take();
}

/// The value of which encode() has made `message`. Throws communication where that is cut off.
template <typename Value>
Value decode(std::span<const std::byte> message) {
  Value value{};
  MessageReader reader(message);
  reader(value);
  return value;
}

/// Calls `move(piece)` for consecutive pieces of `whole`, each of at most `most` bytes: at least
/// one element.
template <typename Element, typename Move>
void in_pieces(std::span<Element> whole, std::size_t most, Move move) {
  const std::size_t elements = std::max<std::size_t>(1, most / sizeof(Element));
  for (std::size_t done = 0; done < whole.size(); done += elements) {
    move(whole.subspan(done, std::min(elements, whole.size() - done)));
  }
}

/// Memory for messages that is used again: fresh memory of some hundred kilobytes comes from the
/// kernel page by page, which costs more than filling it.
/// Not synchronized. Holds at most as many buffers as were out at once.
class SpareBuffers {
 public:
  using Buffer = std::vector<std::byte>;

  /// At least `bytes` long, with any content.
  Buffer take(std::size_t bytes) {
    Buffer buffer;
    if (!spare_.empty()) {
      buffer = std::move(spare_.back());
      spare_.pop_back();
    }
    if (buffer.size() < bytes) buffer.resize(bytes);
    return buffer;
  }
  void give_back(Buffer buffer) {
    if (!buffer.empty()) spare_.push_back(std::move(buffer));
  }

 private:
  std::vector<Buffer> spare_;
};

}  // namespace forebay
