#include "core/number_text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>

#include "forebay/error.hpp"

namespace forebay {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::uint64_t kKibi = 1024;
constexpr Unit kBinaryUnits[] = {{"TiB", kKibi* kKibi* kKibi* kKibi},
                                 {"GiB", kKibi* kKibi* kKibi},
                                 {"MiB", kKibi* kKibi},
                                 {"KiB", kKibi},
                                 {"B", 1}};
constexpr Unit kByteUnits[] = {{"", 1},
                               {"B", 1},
                               {"K", kKibi},
                               {"k", kKibi},
                               {"KiB", kKibi},
                               {"M", kKibi* kKibi},
                               {"MiB", kKibi* kKibi},
                               {"G", kKibi* kKibi* kKibi},
                               {"GiB", kKibi* kKibi* kKibi},
                               {"T", kKibi* kKibi* kKibi* kKibi},
                               {"TiB", kKibi* kKibi* kKibi* kKibi},
                               {"kB", 1'000},
                               {"KB", 1'000},
                               {"MB", 1'000'000},
                               {"GB", 1'000'000'000},
                               {"TB", 1'000'000'000'000}};
constexpr Unit kTimeUnits[] = {
    {"h", 3'600'000'000'000}, {"min", 60'000'000'000}, {"s", 1'000'000'000},
    {"ms", 1'000'000},        {"us", 1'000},           {"ns", 1}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// One quantity: "<digits>[.<digits>]<unit>", at most `most` in the smallest unit.
class QuantityParser {
 public:
  QuantityParser(std::string_view text, std::string_view name, std::string_view advice)
      : text_(text), name_(name), advice_(advice) {}

  std::uint64_t parse(std::span<const Unit> units, std::uint64_t most) const {
    std::size_t end = 0;
    while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '.')) ++end;
    const std::string_view number = text_.substr(0, end);
    const Unit& unit = find_unit(units, text_.substr(end));
    const bool whole = number.find('.') == std::string_view::npos;
    return whole ? scale_whole(number, unit, most) : scale_fraction(number, unit, most);
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw Error(ErrorKind::usage, fmt::format("{}: '{}' {}", name_, text_, why),
                std::string(advice_));
  }

  const Unit& find_unit(std::span<const Unit> units, std::string_view name) const {
    for (const Unit& unit : units) {
      if (unit.name == name) return unit;
    }
    fail(name.empty() ? "has no unit" : fmt::format("has the unknown unit '{}'", name));
  }

  std::uint64_t scale_whole(std::string_view number, const Unit& unit, std::uint64_t most) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error == std::errc::result_out_of_range) fail("is too large");
    if (error != std::errc{}) fail("is not a number");
    if (value > most / unit.factor) fail("is too large");
    return value * unit.factor;
  }

  std::uint64_t scale_fraction(std::string_view number, const Unit& unit,
                               std::uint64_t most) const {
    const bool well_formed = is_digit(number.front()) && is_digit(number.back()) &&
                             number.find('.') == number.rfind('.');
    if (!well_formed) fail("is not a number");
    double value = 0;
    std::from_chars(number.data(), number.data() + number.size(), value);
    const double scaled = std::round(value * static_cast<double>(unit.factor));
    if (scaled >= static_cast<double>(most)) fail("is too large");
    return static_cast<std::uint64_t>(scaled);
  }

  std::string_view text_;
  std::string_view name_;
  std::string_view advice_;
};

std::string exact_text(std::uint64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0) {
      return fmt::format("{}{}", value / unit.factor, unit.name);
    }
  }
  return fmt::format("0{}", units.back().name);
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text, std::string_view name) {
  return QuantityParser(text, name, "write a size such as 512K, 64MiB or 2.5GiB")
      .parse(kByteUnits, UINT64_MAX);
}

std::chrono::nanoseconds parse_duration(std::string_view text, std::string_view name) {
  const std::uint64_t value =
      QuantityParser(text, name, "write a duration such as 5s, 200ms or 10min")
          .parse(kTimeUnits, INT64_MAX);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(value));
}

std::uint64_t parse_count(std::string_view text, std::string_view name, std::uint64_t least,
                          std::uint64_t most) {
  std::uint64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error == std::errc{} && end == last && value >= least && value <= most) return value;
  const std::string range = most == UINT64_MAX ? fmt::format("of at least {}", least)
                                               : fmt::format("from {} to {}", least, most);
  throw Error(ErrorKind::usage, fmt::format("{}: '{}' is not a whole number {}", name, text, range),
              "write decimal digits only");
}

std::string format_bytes(std::uint64_t bytes) {
  for (const Unit& unit : kBinaryUnits) {
    if (bytes < unit.factor || unit.factor == 1) continue;
    const double value = static_cast<double>(bytes) / static_cast<double>(unit.factor);
    return fmt::format("{:.{}f} {}", value, value < 99.95 ? 1 : 0, unit.name);
  }
  return fmt::format("{} B", bytes);
}

std::string exact_bytes(std::uint64_t bytes) { return exact_text(bytes, kBinaryUnits); }

std::string exact_duration(std::chrono::nanoseconds duration) {
  const bool negative = duration.count() < 0;
  const auto magnitude =
      static_cast<std::uint64_t>(negative ? -duration.count() : duration.count());
  return (negative ? "-" : "") + exact_text(magnitude, kTimeUnits);
}

}  // namespace forebay
