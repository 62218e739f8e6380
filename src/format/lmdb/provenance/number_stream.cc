#include "format/lmdb/provenance/number_stream.hpp"

#include <fmt/format.h>

#include "forebay/error.hpp"

namespace forebay::lmdb {

void NumberWriter::put(std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) {
    bytes_.push_back(static_cast<std::byte>(number | 0x80));
  }
  bytes_.push_back(static_cast<std::byte>(number));
}

void NumberWriter::put(const std::string& text) {
  put(text.size());
  for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
}

void NumberReader::refuse(const std::string& fault) const {
  throw Error(ErrorKind::corrupt, fmt::format("{}: {}", what_, fault),
              "make the provenance of the data set anew");
}

std::uint64_t NumberReader::raw() {
  std::uint64_t number = 0;
  for (unsigned shift = 0;; shift += 7) {
    if (bytes_.empty()) refuse("it ends too early");
    const auto byte = std::to_integer<std::uint64_t>(bytes_.front());
    bytes_ = bytes_.subspan(1);
    // The tenth byte holds the one bit that is left.
    if (shift > 63 || (shift == 63 && byte > 1)) refuse("a number of more than 64 bits");
    number |= (byte & 0x7F) << shift;
    if (byte < 0x80) return number;
  }
}

std::uint64_t NumberReader::get(std::uint64_t least, std::uint64_t most, const char* name) {
  const std::uint64_t number = raw();
  if (number < least || number > most) {
    refuse(fmt::format("{} is {}, not between {} and {}", name, number, least, most));
  }
  return number;
}

std::string NumberReader::get_text(std::size_t longest, const char* name) {
  const std::size_t size = get(0, longest, name);
  if (size > bytes_.size()) refuse("it ends too early");
  const std::string text(reinterpret_cast<const char*>(bytes_.data()), size);
  bytes_ = bytes_.subspan(size);
  return text;
}

void NumberReader::end() const {
  if (!bytes_.empty()) refuse(fmt::format("{} bytes follow its end", bytes_.size()));
}

}  // namespace forebay::lmdb
