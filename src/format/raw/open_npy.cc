#include "format/raw/open_npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "forebay/error.hpp"
#include "format/raw/choose_fields.hpp"
#include "format/raw/npy_header.hpp"
#include "format/same_schema.hpp"
#include "format/strided_field.hpp"

namespace forebay::raw {
namespace {

struct NpyArray {
  std::uint64_t rows = 0;
  Field field;
  StridedLayout layout;
};

NpyArray read_array(const File& file) {
  try {
    const NpyHeader header = read_npy_header(file);
    NpyArray array{.rows = header.shape[0],
                   .field = {.name = "data", .type = header.type, .shape = {}},
                   .layout = {}};
    array.field.shape.assign(header.shape.begin() + 1, header.shape.end());
    array.field.shape.insert(array.field.shape.end(), header.inside.begin(), header.inside.end());
    const std::uint64_t bytes = array.field.bytes();
    array.layout = {
        .first = header.data_offset, .stride = bytes, .row_bytes = bytes, .swap = header.swap};
    if (fits(array.layout, array.rows, file.size())) return array;
    throw Error(ErrorKind::corrupt,
                fmt::format("{} samples of {} bytes do not fit into the file of {} bytes",
                            array.rows, bytes, file.size()),
                "the file was cut: copy it again from its source");
  } catch (const Error& error) {
    throw error.within({.file = file.path()});
  }
}

}  // namespace

std::unique_ptr<DataSet> open_npy(const std::string& text, DataFiles files,
                                  std::span<const FieldChoice> choices) {
  std::vector<SamplePart> parts;
  Schema schema;
  for (const auto& file : files) {
    const auto number = static_cast<std::uint32_t>(parts.size());
    NpyArray array = read_array(*file);
    SamplePart part{.rows = array.rows, .fields = {}};
    part.fields.push_back(
        {.file = number, .storage = std::make_shared<StridedField>(array.layout, "contiguous")});
    const Schema found{{std::move(array.field)}};
    if (number == 0) schema = found;
    require_same_schema(schema, files[0]->path(), found, file->path());
    parts.push_back(std::move(part));
  }
  choose_fields(choices, schema, parts, text);
  return std::make_unique<FieldSet>(text, "npy", std::move(schema), std::move(files),
                                    std::move(parts));
}

Format npy_format() {
  return {
      .name = "npy",
      .description = "NumPy arrays: a sample is what lies under one index of the first dimension",
      .recognise =
          [](const FirstFile& first) {
            if (!first.file) return false;
            std::array<std::byte, kNpyPreambleBytes> start{};
            const auto known =
                std::span(start).first(std::min<std::uint64_t>(start.size(), first.file->size()));
            first.file->read(0, known);
            return is_npy(known);
          },
      .open =
          [](const FormatRequest& request) {
            return open_npy(request.text, request.open_files(), request.found.fields);
          }};
}

}  // namespace forebay::raw
