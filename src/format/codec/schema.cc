// Element types, fields and schemas, and their text form "image:u8[3x32x32],label:i32[]".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "forebay/dataset.hpp"
#include "forebay/error.hpp"
#include "format/codec/codecs.hpp"

namespace forebay {
namespace {

struct TypeInfo {
  std::string_view name;
  std::size_t size;
};

// In the order of ElementType.
constexpr std::array<TypeInfo, 11> kTypes{{{"u8", 1},
                                           {"i32", 4},
                                           {"i64", 8},
                                           {"f32", 4},
                                           {"f64", 8},
                                           {"i8", 1},
                                           {"u16", 2},
                                           {"i16", 2},
                                           {"u32", 4},
                                           {"u64", 8},
                                           {"f16", 2}}};

// Far above any real tensor, and low enough that bytes() cannot wrap for any element type.
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 56;

[[noreturn]] void throw_bad_schema(std::string_view text, const std::string& why) {
  throw Error(ErrorKind::usage, fmt::format("schema '{}': {}", text, why),
              "write it like image:u8[3x32x32],label:i32[]");
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_field_name(std::string_view name) {
  return !name.empty() && name.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
                              "XYZ0123456789_.-") == std::string_view::npos;
}

std::vector<std::uint64_t> parse_dimensions(std::string_view text, std::string_view whole) {
  std::vector<std::uint64_t> shape;
  while (!text.empty()) {
    const auto cross = std::min(text.find('x'), text.size());
    const auto digits = text.substr(0, cross);
    std::uint64_t size = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (parsed.ec != std::errc{} || parsed.ptr != digits.data() + digits.size() || size == 0) {
      throw_bad_schema(whole, fmt::format("'{}' is not a dimension of 1 or more", digits));
    }
    if (cross + 1 == text.size()) throw_bad_schema(whole, "a dimension is missing after 'x'");
    shape.push_back(size);
    text.remove_prefix(std::min(cross + 1, text.size()));
  }
  return shape;
}

Field parse_field(std::string_view text, std::string_view whole) {
  const auto colon = text.find(':');
  const auto bracket = text.find('[');
  if (colon == std::string_view::npos || bracket == std::string_view::npos || bracket < colon ||
      text.back() != ']') {
    throw_bad_schema(whole, fmt::format("'{}' is not NAME:TYPE[DIMENSIONS]", text));
  }
  Field field;
  field.name = trim(text.substr(0, colon));
  if (!is_field_name(field.name)) {
    throw_bad_schema(whole, fmt::format("'{}' is not a field name", field.name));
  }
  field.type = parse_element_type(trim(text.substr(colon + 1, bracket - colon - 1)));
  field.shape = parse_dimensions(text.substr(bracket + 1, text.size() - bracket - 2), whole);
  field.elements();  // refuses shapes whose size does not fit in 64 bits
  return field;
}

}  // namespace

std::size_t size_of(ElementType type) { return kTypes[static_cast<std::size_t>(type)].size; }

std::string_view to_string(ElementType type) { return kTypes[static_cast<std::size_t>(type)].name; }

bool is_element_type(std::string_view text) {
  return std::ranges::find(kTypes, text, &TypeInfo::name) != kTypes.end();
}

ElementType parse_element_type(std::string_view text) {
  const auto* const at = std::ranges::find(kTypes, text, &TypeInfo::name);
  if (at != kTypes.end()) return static_cast<ElementType>(at - kTypes.begin());
  throw Error(ErrorKind::usage, fmt::format("'{}' is not an element type", text),
              "use one of u8, u16, u32, u64, i8, i16, i32, i64, f16, f32, f64");
}

std::uint64_t Field::elements() const {
  std::uint64_t product = 1;
  for (const std::uint64_t size : shape) {
    if (__builtin_mul_overflow(product, size, &product) || product > kMaxElements) {
      throw Error(
          ErrorKind::usage,
          fmt::format("field '{}' has more than 2^56 elements: {}", name, fmt::join(shape, "x")),
          "declare the shape of one sample");
    }
  }
  return product;
}

const Field* Schema::find(std::string_view name) const {
  for (const Field& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

std::string to_string(const Schema& schema) {
  std::string text;
  for (const Field& field : schema.fields) {
    if (!text.empty()) text += ',';
    text +=
        fmt::format("{}:{}[{}]", field.name, to_string(field.type), fmt::join(field.shape, "x"));
  }
  return text;
}

Schema parse_schema(std::string_view text) {
  Schema schema;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    if (comma + 1 == rest.size()) throw_bad_schema(text, "a field is missing after ','");
    const auto field_text = trim(rest.substr(0, comma));
    if (field_text.empty()) throw_bad_schema(text, "a field is empty");
    Field field = parse_field(field_text, text);
    if (schema.find(field.name) != nullptr) {
      throw_bad_schema(text, fmt::format("field '{}' appears twice", field.name));
    }
    schema.fields.push_back(std::move(field));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return schema;
}

}  // namespace forebay
