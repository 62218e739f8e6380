#include "format/lmdb/key_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "forebay/error.hpp"

namespace forebay::lmdb {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void KeyPattern::add(std::span<const std::byte> key) {
  const std::string_view text(reinterpret_cast<const char*>(key.data()), key.size());
  const auto after_digits = std::find_if_not(text.begin(), text.end(), is_digit);
  all_digits_ = all_digits_ && after_digits == text.end();
  digits_then_name_ = digits_then_name_ && after_digits != text.begin() &&
                      after_digits != text.end() && *after_digits == '_';
  printable_ = printable_ && std::all_of(text.begin(), text.end(), [](char c) {
                 return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
               });
  if (count_++ == 0) {
    common_ = text;
    least_ = most_ = text.size();
    return;
  }
  least_ = std::min(least_, text.size());
  most_ = std::max(most_, text.size());
  const std::size_t both = std::min(common_.size(), text.size());
  const auto differ = std::mismatch(common_.begin(), common_.begin() + both, text.begin());
  common_.resize(static_cast<std::size_t>(differ.first - common_.begin()));
}

std::string KeyPattern::text(bool integer_keys) const {
  if (count_ == 0) return "none";
  if (integer_keys) return fmt::format("integer, {} bytes", most_);
  if (all_digits_ && least_ == most_) return fmt::format("decimal, {} digits, zero-padded", most_);
  if (all_digits_) return "decimal, not padded: key order is not numeric order";
  if (digits_then_name_) return "decimal number, '_' and a name, as Caffe writes them";
  const std::string kind = printable_ ? "text" : "bytes";
  if (count_ > 1 && common_.size() >= 2) {
    return fmt::format("{}, prefix '{}'", kind, printable_key(common_));
  }
  return fmt::format("{}, {}", kind, least_ == most_ ? "one length" : "lengths vary");
}

}  // namespace forebay::lmdb
