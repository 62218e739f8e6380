#include "format/byte_stream.hpp"

#include <fmt/format.h>

#include "forebay/error.hpp"

namespace forebay {
namespace {

[[noreturn]] void refuse(const char* text) { throw Error(ErrorKind::corrupt, text); }

}  // namespace

void refuse_load() { refuse("a number lies outside of its bytes"); }

void ByteWriter::varint(std::uint64_t value) {
  for (; value >= 128; value >>= 7) bytes_.push_back(static_cast<std::byte>(value | 128));
  bytes_.push_back(static_cast<std::byte>(value));
}

void ByteWriter::difference(std::uint64_t value) {
  const std::uint64_t sign = value >> 63;
  varint((value << 1) ^ (~sign + 1));
}

void ByteWriter::block(std::span<const std::byte> bytes) {
  varint(bytes.size());
  raw(bytes);
}

std::uint64_t ByteReader::long_varint() {
  constexpr std::size_t kMost = 10;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kMost; ++i) {
    if (i == rest_.size()) end_early();
    const auto byte = std::to_integer<std::uint64_t>(rest_[i]);
    if (i + 1 == kMost && byte > 1) break;
    value |= (byte & 127) << 7 * i;
    if (byte >= 128) continue;
    rest_ = rest_.subspan(i + 1);
    return value;
  }
  refuse("a number has more than 64 bits");
}

void ByteReader::end_early() { refuse("it ends too early"); }

std::uint64_t ByteReader::varint(std::uint64_t most) {
  const std::uint64_t value = varint();
  if (value > most) {
    throw Error(ErrorKind::corrupt,
                fmt::format("a number of {} where at most {} is possible", value, most));
  }
  return value;
}

void ByteReader::end() const {
  if (!rest_.empty()) refuse("there is more of it than there should be");
}

void NumberReader::refuse(const std::string& fault) const {
  throw Error(ErrorKind::corrupt, fmt::format("{}: {}", what_, fault),
              "make the provenance of the data set anew");
}

template <typename Read>
auto NumberReader::read(Read&& read) const {
  try {
    return read();
  } catch (const Error& error) {
    refuse(error.happened());
  }
}

std::uint64_t NumberReader::get(std::uint64_t least, std::uint64_t most, const char* name) {
  const std::uint64_t number = read([this] { return in_.varint(); });
  if (number < least || number > most) {
    refuse(fmt::format("{} is {}, not between {} and {}", name, number, least, most));
  }
  return number;
}

std::string NumberReader::get_text(std::size_t longest, const char* name) {
  const std::size_t size = get(0, longest, name);
  return std::string(chars_of(read([&] { return in_.raw(size); })));
}

void NumberReader::end() const {
  read([this] { return in_.end(); });
}

}  // namespace forebay
