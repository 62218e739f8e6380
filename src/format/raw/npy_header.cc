#include "format/raw/npy_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/dataset_files.hpp"
#include "format/strided_field.hpp"

namespace forebay::raw {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostDimensions = 64;
constexpr std::uint64_t kMostSize = std::uint64_t{1} << 56;

[[noreturn]] void damaged(const std::string& what) {
  throw Error(ErrorKind::corrupt, "not a sound .npy header: " + what,
              "the file is damaged or was cut: write it again with numpy.save");
}

[[noreturn]] void refuse(const std::string& what, const std::string& remedy) {
  throw Error(ErrorKind::unsupported, what, remedy);
}

unsigned byte_at(std::span<const std::byte> bytes, std::size_t i) {
  return std::to_integer<unsigned>(bytes[i]);
}

/// A reader of the dictionary's text; what does not fit throws.
class Literal {
 public:
  explicit Literal(std::string_view text) : rest_(text) {}

  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void need(char c) {
    if (!take(c)) damaged(fmt::format("'{}' is missing", c));
  }
  bool starts_with(char c) {
    skip_space();
    return rest_.starts_with(c);
  }
  bool at_end() {
    skip_space();
    return rest_.empty();
  }

  std::string_view string() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"') need('"');
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) damaged("a string does not end");
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool boolean() {
    skip_space();
    for (const std::string_view word : {std::string_view("True"), std::string_view("False")}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return word == "True";
    }
    damaged("True or False is missing");
  }

  std::uint64_t number() {
    skip_space();
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (parsed.ec != std::errc{}) damaged("a dimension is not a number");
    if (value > kMostSize) damaged(fmt::format("a dimension of {} is impossible", value));
    rest_.remove_prefix(static_cast<std::size_t>(parsed.ptr - rest_.data()));
    if (rest_.starts_with('L')) rest_.remove_prefix(1);  // as Python 2 wrote it
    return value;
  }

 private:
  void skip_space() {
    const std::size_t space = rest_.find_first_not_of(" \t\n");
    rest_.remove_prefix(std::min(space, rest_.size()));
  }

  std::string_view rest_;
};

std::vector<std::uint64_t> parse_shape(Literal& text) {
  std::vector<std::uint64_t> shape;
  text.need('(');
  while (!text.take(')')) {
    if (shape.size() == kMostDimensions) damaged("too many dimensions");
    shape.push_back(text.number());
    if (text.take(',')) continue;
    text.need(')');
    break;
  }
  return shape;
}

struct Kind {
  std::string_view code;  // without the byte order
  ElementType type;
};

constexpr std::array<Kind, 12> kKinds{{{"u1", ElementType::u8},
                                       {"b1", ElementType::u8},
                                       {"i1", ElementType::i8},
                                       {"u2", ElementType::u16},
                                       {"i2", ElementType::i16},
                                       {"u4", ElementType::u32},
                                       {"i4", ElementType::i32},
                                       {"u8", ElementType::u64},
                                       {"i8", ElementType::i64},
                                       {"f2", ElementType::f16},
                                       {"f4", ElementType::f32},
                                       {"f8", ElementType::f64}}};

/// Length of "S10" and "V10", fixed strings and opaque bytes.
std::optional<std::uint64_t> fixed_bytes(std::string_view code) {
  if (code.size() < 2 || (code[0] != 'S' && code[0] != 'V')) return {};
  std::uint64_t length = 0;
  const auto parsed = std::from_chars(code.data() + 1, code.data() + code.size(), length);
  if (parsed.ec != std::errc{} || parsed.ptr != code.data() + code.size()) return {};
  if (length > kMostSize) damaged(fmt::format("strings of {} bytes are impossible", length));
  return length;
}

void parse_type(std::string_view descr, NpyHeader& header) {
  if (descr.empty()) damaged("its type is empty");
  const char order = descr[0];
  const std::string_view code = descr.substr(1);
  if (std::string_view("<>|=").find(order) != std::string_view::npos) {
    for (const Kind& kind : kKinds) {
      if (kind.code != code) continue;
      header.type = kind.type;
      const bool other = order == (std::endian::native == std::endian::little ? '>' : '<');
      if (other && size_of(kind.type) > 1)
        header.swap = static_cast<std::uint32_t>(size_of(kind.type));
      return;
    }
    if (const auto length = fixed_bytes(code)) {
      header.inside = {*length};
      return;
    }
  }
  refuse(fmt::format("its elements are '{}', which Forebay does not read", printable_key(descr)),
         "convert the array to integers or floats of 1, 2, 4 or 8 bytes, or to fixed strings (S)");
}

void parse_value(std::string_view key, Literal& text, NpyHeader& header) {
  if (key == "descr") {
    if (text.starts_with('[')) {
      refuse("its elements are structures, which Forebay does not read",
             "save each member as an array of its own");
    }
    parse_type(text.string(), header);
  } else if (key == "fortran_order") {
    header.fortran = text.boolean();
  } else if (key == "shape") {
    header.shape = parse_shape(text);
  } else {
    damaged(fmt::format("unknown key '{}'", printable_key(key)));
  }
}

}  // namespace

bool is_npy(std::span<const std::byte> start) { return chars_of(start).starts_with(kMagic); }

std::uint64_t npy_header_bytes(std::span<const std::byte> start) {
  if (!is_npy(start)) damaged("it does not begin as one");
  if (start.size() < kMagic.size() + 4) damaged("it is too short");
  const unsigned major = byte_at(start, 6);
  if (major < 1 || major > 3) {
    refuse(fmt::format("version {} of the .npy format", major), "save the array with numpy.save");
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t fixed = kMagic.size() + 2 + length_bytes;
  if (start.size() < fixed) damaged("it is too short");
  std::uint64_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | byte_at(start, 8 + i);
  if (length > kMostNpyHeaderBytes) damaged(fmt::format("a length of {}", length));
  return fixed + length;
}

NpyHeader parse_npy_header(std::span<const std::byte> header) {
  const std::uint64_t bytes = npy_header_bytes(header);
  if (header.size() < bytes) damaged("it is cut");
  const std::size_t fixed = byte_at(header, 6) == 1 ? 10 : 12;
  Literal text(chars_of(header.subspan(fixed, bytes - fixed)));
  NpyHeader result;
  result.data_offset = bytes;
  std::vector<std::string_view> seen;
  text.need('{');
  while (!text.take('}')) {
    seen.push_back(text.string());
    if (std::count(seen.begin(), seen.end(), seen.back()) > 1) damaged("a key appears twice");
    text.need(':');
    parse_value(seen.back(), text, result);
    if (text.take(',')) continue;
    text.need('}');
    break;
  }
  if (!text.at_end()) damaged("something follows the dictionary");
  if (seen.size() != 3) damaged("descr, fortran_order or shape is missing");
  const auto longer = [](std::uint64_t size) { return size > 1; };
  result.fortran = result.fortran && std::ranges::count_if(result.shape, longer) > 1 &&
                   std::ranges::count(result.shape, 0U) == 0;
  return result;
}

Field NpyHeader::row(const std::string& name) const {
  Field field{.name = name, .type = type, .shape = {shape.begin() + 1, shape.end()}};
  field.shape.insert(field.shape.end(), inside.begin(), inside.end());
  return field;
}

void require_rows(const NpyHeader& header) {
  if (!header.shape.empty()) return;
  refuse("it is a single value, not a list of samples", "save an array of at least one dimension");
}

NpyHeader read_npy_header(const File& file) {
  const std::uint64_t size = file.size();
  std::vector<std::byte> bytes(std::min<std::uint64_t>(size, kNpyPreambleBytes));
  file.read(0, bytes);
  const std::uint64_t length = npy_header_bytes(bytes);
  bytes.resize(std::min(size, length));
  file.read(0, bytes);
  NpyHeader header = parse_npy_header(bytes);
  require_rows(header);
  if (!header.fortran) return header;
  refuse("it is stored in Fortran order, where a sample is spread over the whole file",
         fmt::format("write it anew: {}",
                     python_line("import sys, numpy as n; n.save(sys.argv[2], "
                                 "n.asarray(n.load(sys.argv[1], mmap_mode=\"r\"), order=\"C\"))",
                                 {file.path(), beside(file.path(), "-c.npy")})));
}

void require_only_array(const NpyHeader& header, const File& file) {
  const std::uint64_t size = file.size();
  const std::uint64_t bytes = header.row("data").bytes();
  const StridedLayout layout{.first = header.data_offset, .stride = bytes, .row_bytes = bytes};
  if (!fits(layout, header.rows(), size)) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{} samples of {} bytes do not fit into the file of {} bytes",
                            header.rows(), bytes, size),
                "the file was cut: copy it again from its source");
  }
  const std::uint64_t end = header.data_offset + header.rows() * bytes;
  if (end == size) return;
  std::array<std::byte, kNpyPreambleBytes> start{};
  const auto known = std::span(start).first(std::min<std::uint64_t>(start.size(), size - end));
  file.read(end, known);
  if (!is_npy(known)) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{} bytes follow the array, which ends at byte {} of {}", size - end,
                            end, size),
                "save the array again with numpy.save", {.offset = end});
  }
  throw Error(
      ErrorKind::unsupported,
      fmt::format("the file holds several arrays: the next one begins at byte {} of {}", end, size),
      fmt::format(
          "write each to a file of its own: {}",
          python_line("import sys, os, itertools, numpy as n; p = sys.argv[1]; f = open(p, "
                      "\"rb\"); [n.save(\"%s-%d.npy\" % (sys.argv[2], i), n.load(f)) for i in "
                      "itertools.takewhile(lambda i: f.tell() < os.path.getsize(p), "
                      "itertools.count())]",
                      {file.path(), beside(file.path(), "")})),
      {.offset = end});
}

}  // namespace forebay::raw
