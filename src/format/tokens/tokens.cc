#include "format/tokens/tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/field_files.hpp"
#include "format/raw/npy_header.hpp"
#include "format/strided_field.hpp"
#include "storage/storages.hpp"

namespace forebay::tokens {
namespace {

static_assert(std::endian::native == std::endian::little);

//  mark, 9 bytes | version 1, 8 | type, 1 | sequences S, 8 | bounds of documents D, 8
//  tokens of each sequence, S * 4 | its first byte, S * 8 | first sequence of each document, and S,
//  D * 8 | more, which nobody needs
constexpr std::string_view kMark("MMIDIDX\0\0", 9);
constexpr std::uint64_t kIndexHeader = 34;
constexpr const char* kRestore = "the index is damaged: copy it again from its source";

/// All tokens of a file.
struct Stream {
  ElementType type = ElementType::u16;
  std::uint64_t first = 0;  ///< offset
  std::uint64_t tokens = 0;
  std::uint32_t swap = 0;
};

[[noreturn]] void damaged(const std::string& what, std::uint64_t offset) {
  throw Error(ErrorKind::corrupt, what, kRestore, {.offset = offset});
}

std::string index_of(const std::string& path) {
  return path.ends_with(".bin") ? path.substr(0, path.size() - 4) + ".idx" : std::string();
}

/// Megatron's, beside the file; null where there is none.
std::shared_ptr<const File> open_index(const std::string& path) {
  const std::string index = index_of(path);
  if (index.empty() || !storage_has(index)) return nullptr;
  auto file = open_file(index, Engine::pread);
  std::array<std::byte, kMark.size()> start{};
  if (file->size() < start.size()) return nullptr;
  file->read(0, start);
  return chars_of(start) == kMark ? file : nullptr;
}

std::optional<ElementType> declared_type(const FormatOptions& options) {
  if (options.schema.empty()) return std::nullopt;
  const std::string_view text = options.schema;
  if (text.find(':') == std::string_view::npos) return parse_element_type(text);
  throw Error(ErrorKind::usage, fmt::format("'{}' is no type of tokens", text),
              "name one alone, as --schema u16");
}

[[noreturn]] void refuse_type(ElementType type) {
  throw Error(ErrorKind::unsupported, fmt::format("{} are no tokens", to_string(type)),
              "convert them to whole numbers");
}

Stream stream_of_npy(const File& file) {
  const raw::NpyHeader header = raw::read_npy_header(file);
  if (header.shape.size() != 1 || !header.inside.empty()) {
    throw Error(ErrorKind::unsupported,
                fmt::format("the array has {} dimensions, and a stream of tokens has one",
                            header.shape.size() + header.inside.size()),
                "leave out --length, or flatten the array");
  }
  raw::require_only_array(header, file);
  return {.type = header.type,
          .first = header.data_offset,
          .tokens = header.shape[0],
          .swap = header.swap};
}

Stream stream_of_index(const File& index) {
  try {
    Stream stream;
    std::vector<std::byte> bytes(index.size());
    index.read(0, bytes);
    stream.type = parse_index(bytes, stream.tokens);
    return stream;
  } catch (const Error& error) {
    throw error.within({.file = index.path()});
  }
}

Stream stream_of_bin(const File& file, const FormatOptions& options) {
  const auto declared = declared_type(options);
  if (const auto index = open_index(file.path())) {
    const Stream stream = stream_of_index(*index);
    const std::uint64_t width = size_of(stream.type);
    if (file.size() % width != 0 || file.size() / width != stream.tokens) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("{} lists {} tokens of {} bytes, and the file has {} bytes",
                              index->path(), stream.tokens, width, file.size()),
                  "copy both again from their source");
    }
    if (!declared || *declared == stream.type) return stream;
    throw Error(ErrorKind::usage,
                fmt::format("tokens are {} and not {}, says {}", to_string(stream.type),
                            to_string(*declared), index->path()),
                "leave out --schema");
  }
  if (!declared) {
    throw Error(ErrorKind::usage, "the file does not say of which type its tokens are",
                "name it: --schema u16 (nanoGPT's GPT-2 tokens) or u32");
  }
  const auto width = static_cast<std::uint32_t>(size_of(*declared));
  const std::uint64_t size = file.size();
  if (size < options.header_bytes || (size - options.header_bytes) % width != 0) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{} bytes are not {} bytes of header and whole {} tokens", size,
                            options.header_bytes, to_string(*declared)),
                "the file was cut, or correct --schema and --header-bytes");
  }
  return {.type = *declared,
          .first = options.header_bytes,
          .tokens = (size - options.header_bytes) / width,
          .swap = options.big_endian ? width : 0};
}

Stream stream_of(const File& file, const FormatOptions& options) {
  std::array<std::byte, raw::kNpyPreambleBytes> start{};
  const auto known = std::span(start).first(std::min<std::uint64_t>(start.size(), file.size()));
  file.read(0, known);
  const Stream stream = raw::is_npy(known) ? stream_of_npy(file) : stream_of_bin(file, options);
  const std::string_view name = to_string(stream.type);
  if (name.starts_with('f')) refuse_type(stream.type);
  const std::uint64_t width = size_of(stream.type);
  if (stream.tokens <= (file.size() - std::min(file.size(), stream.first)) / width) return stream;
  throw Error(
      ErrorKind::corrupt,
      fmt::format("{} tokens do not fit into the file of {} bytes", stream.tokens, file.size()),
      "the file was cut: copy it again from its source");
}

/// Windows of the data set, and tokens that are in none.
struct Windows {
  std::uint64_t length = 0;
  std::uint64_t step = 0;
  std::uint64_t left_out = 0;

  std::uint64_t count(std::uint64_t tokens) {
    const std::uint64_t windows = tokens < length ? 0 : (tokens - length) / step + 1;
    const std::uint64_t end = windows == 0 ? 0 : (windows - 1) * step + length;
    left_out += tokens - end;
    return windows;
  }
};

Windows windows_of(const FormatOptions& options, const std::string& text) {
  const std::uint64_t step = options.window_step == 0 ? options.window_length : options.window_step;
  if (options.window_length == 0) {
    throw Error(ErrorKind::usage, "how many tokens make a sample is not told",
                "say --length, and --step where samples are to overlap", {.file = text});
  }
  if (std::max(options.window_length, step) > UINT32_MAX) {
    throw Error(
        ErrorKind::usage,
        fmt::format("windows of {} tokens, {} apart, are too large", options.window_length, step),
        fmt::format("--length and --step may be {} at most", UINT32_MAX), {.file = text});
  }
  return {.length = options.window_length, .step = step};
}

std::unique_ptr<DataSet> open_tokens(const FormatRequest& request) {
  Windows windows = windows_of(request.options, request.text);
  std::vector<std::string> notes;
  const auto read = [&](const std::shared_ptr<const File>& file) {
    const Stream stream = stream_of(*file, request.options);
    const std::uint64_t width = size_of(stream.type);
    const StridedLayout layout{.first = stream.first,
                               .stride = windows.step * width,
                               .row_bytes = windows.length * width,
                               .swap = stream.swap};
    std::vector<FileField> found{
        {.field = {.name = "tokens", .type = stream.type, .shape = {windows.length}},
         .storage =
             std::make_shared<StridedField>(layout, fmt::format("windows, {} apart", windows.step)),
         .rows = windows.count(stream.tokens)}};
    if (windows.left_out > 0) {
      notes = {fmt::format("{} tokens at the end of files fill no window of {} and are left out",
                           windows.left_out, windows.length)};
    }
    return found;
  };
  return open_fields(request.text, "tokens", request.open_files(), request.found.fields, read,
                     notes);
}

/// Megatron's files by their index; others where a length or a type says that they are streams.
bool are_tokens(const FirstFile& first) {
  if (!first.file) return false;
  if (open_index(first.file->path())) return true;
  const std::string& schema = first.options.schema;
  const bool typed = !schema.empty() && schema.find(':') == std::string::npos;
  if (first.path.ends_with(".bin")) return first.options.window_length > 0 || typed;
  return first.options.window_length > 0 && first.path.ends_with(".npy");
}

}  // namespace

ElementType parse_index(std::span<const std::byte> index, std::uint64_t& tokens) {
  // In the order of Megatron's codes, from 1 on.
  constexpr std::array kTypes{ElementType::u8,  ElementType::i8,  ElementType::i16,
                              ElementType::i32, ElementType::i64, ElementType::f64,
                              ElementType::f32, ElementType::u16};
  const bool begins = index.size() >= kIndexHeader && chars_of(index).starts_with(kMark);
  if (!begins || load<std::uint64_t>(index, 9) != 1) {
    throw Error(ErrorKind::unsupported, "it is no index of Megatron's version 1",
                "write the data again with Megatron's preprocess_data.py");
  }
  const auto code = load<std::uint8_t>(index, 17);
  const auto sequences = load<std::uint64_t>(index, 18);
  if (code == 0 || code > kTypes.size()) {
    damaged(fmt::format("{} is the code of no type", code), 17);
  }
  const auto bounds = load<std::uint64_t>(index, 26);
  const std::uint64_t room = index.size() - kIndexHeader;
  if (sequences > room / 12 || bounds > (room - 12 * sequences) / 8) {
    damaged(fmt::format("{} sequences and {} bounds of documents do not fit the index", sequences,
                        bounds),
            18);
  }
  const ElementType type = kTypes[code - 1U];
  const std::uint64_t firsts = kIndexHeader + 4 * sequences;
  tokens = 0;
  for (std::uint64_t i = 0; i < sequences; ++i) {
    const auto length = load<std::int32_t>(index, kIndexHeader + 4 * i);
    if (length < 0) damaged("a sequence has a negative length", kIndexHeader + 4 * i);
    if (load<std::uint64_t>(index, firsts + 8 * i) != tokens * size_of(type)) {
      damaged(fmt::format("sequence {} does not begin where the one before it ends", i),
              firsts + 8 * i);
    }
    tokens += static_cast<std::uint64_t>(length);
  }
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < bounds; ++i) {
    const std::uint64_t at = firsts + 8 * (sequences + i);
    const auto bound = load<std::uint64_t>(index, at);
    if (bound < before || bound > sequences || (i + 1 == bounds && bound != sequences)) {
      damaged(fmt::format("document {} of {} sequences begins at sequence {}", i, sequences, bound),
              at);
    }
    before = bound;
  }
  return type;
}

Format tokens_format() {
  return {.name = "tokens",
          .description =
              "streams of tokens (.npy, .bin, Megatron's .bin with .idx): a sample is a "
              "window of --length tokens, every --step tokens",
          .recognise = are_tokens,
          .open = open_tokens,
          .takes_schema = true};
}

}  // namespace forebay::tokens
