#include "format/hdf5/name_numbers.hpp"

#include <algorithm>
#include <compare>
#include <set>

namespace forebay::hdf5 {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Of any alphabet.
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool has_digit(std::string_view text, std::size_t at) {
  return at < text.size() && is_digit(text[at]);
}

std::size_t end_of_digits(std::string_view text, std::size_t at) {
  while (has_digit(text, at)) ++at;
  return at;
}

/// Where the number ends that begins at `at`; `at` where none does.
std::size_t end_of_number(std::string_view text, std::size_t at) {
  const bool sign = text[at] == '-' && (at == 0 || !is_word(text[at - 1]));
  const std::size_t digits = at + (sign ? 1 : 0);
  const std::size_t end = end_of_digits(text, digits);
  if (end == digits) return at;
  const auto point_at = [&](std::size_t i) { return i < text.size() && text[i] == '.'; };
  const bool behind_point = at >= 2 && point_at(at - 1) && is_digit(text[at - 2]);
  if (behind_point || !point_at(end) || !has_digit(text, end + 1)) return end;
  const std::size_t more = end_of_digits(text, end + 1);
  return point_at(more) && has_digit(text, more + 1) ? end : more;
}

/// What stands behind the point of a number; empty where it has none.
std::string_view fraction_of(std::string_view number) {
  const std::size_t point = number.find('.');
  return point == std::string_view::npos ? std::string_view() : number.substr(point + 1);
}

int sign_of(std::strong_ordering order) {
  if (std::is_eq(order)) return 0;
  return std::is_lt(order) ? -1 : 1;
}

/// Of digits.
int compare_whole(std::string_view a, std::string_view b) {
  a.remove_prefix(std::min(a.find_first_not_of('0'), a.size()));
  b.remove_prefix(std::min(b.find_first_not_of('0'), b.size()));
  return sign_of(a.size() != b.size() ? a.size() <=> b.size() : a <=> b);
}

int compare_fractions(std::string_view a, std::string_view b) {
  a.remove_suffix(a.size() - (a.find_last_not_of('0') + 1));
  b.remove_suffix(b.size() - (b.find_last_not_of('0') + 1));
  return sign_of(a <=> b);
}

}  // namespace

std::vector<NumberPlace> numbers_in(std::string_view name) {
  std::vector<NumberPlace> places;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = end_of_number(name, at);
    if (end > at) places.push_back({.begin = at, .end = end});
    at = std::max(end, at + 1);
  }
  return places;
}

NameOrder::NameOrder(std::span<const std::string> names) {
  std::set<std::size_t> lengths;
  bool zero_at_end = false;
  for (const std::string& name : names) {
    for (const NumberPlace& place : numbers_in(name)) {
      const std::string_view number(name.data() + place.begin, place.end - place.begin);
      const std::string_view digits = fraction_of(number);
      if (digits.empty()) continue;
      lengths.insert(digits.size());
      zero_at_end = zero_at_end || (digits.size() > 1 && digits.ends_with('0'));
    }
  }
  counts_behind_points_ = zero_at_end && lengths.size() > 1;
}

int NameOrder::compare(std::string_view number, std::string_view other) const {
  const bool negative = number.starts_with('-');
  if (negative != other.starts_with('-')) return negative ? -1 : 1;
  if (negative) return -compare(number.substr(1), other.substr(1));
  const auto whole = [](std::string_view text) { return text.substr(0, text.find('.')); };
  const int order = compare_whole(whole(number), whole(other));
  if (order != 0) return order;
  return counts_behind_points_ ? compare_whole(fraction_of(number), fraction_of(other))
                               : compare_fractions(fraction_of(number), fraction_of(other));
}

bool NameOrder::operator()(std::string_view a, std::string_view b) const {
  std::size_t x = 0;
  std::size_t y = 0;
  while (x < a.size() && y < b.size()) {
    const std::size_t end = end_of_number(a, x);
    const std::size_t other_end = end_of_number(b, y);
    if (end > x && other_end > y) {
      const int order = compare(a.substr(x, end - x), b.substr(y, other_end - y));
      if (order != 0) return order < 0;
      x = end;
      y = other_end;
    } else {
      if (a[x] != b[y]) return a[x] < b[y];
      ++x;
      ++y;
    }
  }
  const bool ended = x == a.size();
  return ended != (y == b.size()) ? ended : a < b;
}

}  // namespace forebay::hdf5
