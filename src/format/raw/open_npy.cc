#include "format/raw/open_raw.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "forebay/error.hpp"
#include "format/field_files.hpp"
#include "format/raw/npy_header.hpp"
#include "format/strided_field.hpp"

namespace forebay::raw {
namespace {

FileFields read_array(const File& file) {
  const NpyHeader header = read_npy_header(file);
  Field field{.name = "data", .type = header.type, .shape = {}};
  field.shape.assign(header.shape.begin() + 1, header.shape.end());
  field.shape.insert(field.shape.end(), header.inside.begin(), header.inside.end());
  const std::uint64_t bytes = field.bytes();
  const StridedLayout layout{
      .first = header.data_offset, .stride = bytes, .row_bytes = bytes, .swap = header.swap};
  const std::uint64_t rows = header.shape[0];
  if (!fits(layout, rows, file.size())) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{} samples of {} bytes do not fit into the file of {} bytes", rows,
                            bytes, file.size()),
                "the file was cut: copy it again from its source");
  }
  return {.rows = rows,
          .fields = {{std::move(field), std::make_shared<StridedField>(layout, "contiguous")}}};
}

}  // namespace

std::unique_ptr<DataSet> open_npy(const std::string& text, DataFiles files,
                                  std::span<const FieldChoice> choices) {
  return open_fields(text, "npy", std::move(files), choices,
                     [](const auto& file) { return read_array(*file); });
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
