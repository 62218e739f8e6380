#include "format/raw/open_raw.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <filesystem>

#include "forebay/error.hpp"
#include "format/field_files.hpp"
#include "format/strided_field.hpp"

namespace forebay::raw {
namespace {

constexpr std::uint64_t kCifarRecordBytes = 1 + 3 * 32 * 32;
constexpr unsigned kCifarClasses = 10;

std::uint64_t record_bytes(const Schema& schema, const RecordLayout& layout) {
  if (schema.fields.empty()) {
    throw Error(
        ErrorKind::usage, "files of records do not say what they hold",
        "declare the fields of a record, for example --schema label:u8[],image:u8[3x32x32]");
  }
  std::uint64_t bytes = 0;
  for (const Field& field : schema.fields) {
    if (field.bytes() > UINT64_MAX / 2 - bytes) {
      throw Error(ErrorKind::usage, "the fields of a record are too large", "correct --schema");
    }
    bytes += field.bytes();
  }
  if (layout.record_bytes == 0) return bytes;
  if (layout.record_bytes >= bytes) return layout.record_bytes;
  throw Error(ErrorKind::usage,
              fmt::format("records of {} bytes have no room for {}, which has {}",
                          layout.record_bytes, to_string(schema), bytes),
              "correct --record-bytes or --schema");
}

std::uint64_t count_records(const File& file, std::uint64_t header, std::uint64_t record) {
  const std::uint64_t size = file.size();
  if (size < header || (size - header) % record != 0) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{} bytes are not {} bytes of header and a whole number of {}-byte "
                            "records",
                            size, header, record),
                "the file was cut, or correct --schema, --header-bytes and --record-bytes");
  }
  return (size - header) / record;
}

std::vector<FileField> fields_of_record(const Schema& schema, const RecordLayout& layout,
                                        std::uint64_t record, std::uint64_t records) {
  const bool other_order = layout.big_endian == (std::endian::native == std::endian::little);
  std::vector<FileField> fields;
  std::uint64_t at = layout.header_bytes;
  for (const Field& field : schema.fields) {
    const auto width = static_cast<std::uint32_t>(size_of(field.type));
    const StridedLayout strided{.first = at,
                                .stride = record,
                                .row_bytes = field.bytes(),
                                .swap = other_order && width > 1 ? width : 0};
    fields.push_back({.field = field,
                      .storage = std::make_shared<StridedField>(
                          strided, fmt::format("in records of {} bytes", record)),
                      .rows = records});
    at += field.bytes();
  }
  return fields;
}

}  // namespace

RecordLayout cifar10_layout() { return {.schema = "label:u8[],image:u8[3x32x32]"}; }

bool is_cifar10(const File& file) {
  const std::string name = std::filesystem::path(file.path()).filename().string();
  if (!name.ends_with(".bin") ||
      !(name.starts_with("data_batch") || name.starts_with("test_batch")))
    return false;
  const std::uint64_t size = file.size();
  if (size == 0 || size % kCifarRecordBytes != 0) return false;
  std::array<std::byte, 1> label{};
  for (const std::uint64_t at : {std::uint64_t{0}, size - kCifarRecordBytes}) {
    file.read(at, label);
    if (std::to_integer<unsigned>(label[0]) >= kCifarClasses) return false;
  }
  return true;
}

std::unique_ptr<DataSet> open_raw(const std::string& text, DataFiles files,
                                  std::span<const FieldChoice> choices, const std::string& format,
                                  const RecordLayout& layout) {
  const Schema schema = parse_schema(layout.schema);
  const std::uint64_t record = record_bytes(schema, layout);
  return open_fields(text, format, std::move(files), choices, [&](const auto& file) {
    return fields_of_record(schema, layout, record,
                            count_records(*file, layout.header_bytes, record));
  });
}

Format raw_format() {
  return {.name = "raw",
          .description = "records of one size, of the fields that --schema declares",
          .recognise = {},
          .open =
              [](const FormatRequest& request) {
                const FormatOptions& options = request.options;
                return open_raw(request.text, request.open_files(), request.found.fields, "raw",
                                {.schema = options.schema,
                                 .header_bytes = options.header_bytes,
                                 .record_bytes = options.record_bytes,
                                 .big_endian = options.big_endian});
              },
          .takes_schema = true};
}

Format cifar10_format() {
  return {.name = "cifar10",
          .description = "the binary version of CIFAR-10: label, image",
          .recognise = [](const FirstFile& first) { return first.file && is_cifar10(*first.file); },
          .open =
              [](const FormatRequest& request) {
                return open_raw(request.text, request.open_files(), request.found.fields, "cifar10",
                                cifar10_layout());
              }};
}

}  // namespace forebay::raw
