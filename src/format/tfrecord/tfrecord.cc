#include "format/tfrecord/tfrecord.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "forebay/error.hpp"
#include "format/header_reader.hpp"

namespace forebay::tfrecord {
namespace {

void find_records(const File& file, RecordIndex& index) {
  HeaderReader reader(file);
  std::uint64_t at = 0;
  try {
    while (at < reader.size()) {
      const std::uint64_t rest = reader.size() - at;
      if (rest < kAround) throw Error(ErrorKind::corrupt, "a record is cut", kRestore);
      const std::uint64_t length = data_bytes(reader.at(at, kHeader));
      if (length > rest - kAround) {
        throw Error(ErrorKind::corrupt,
                    fmt::format("a record of {} bytes has {} to the end of the file", length,
                                rest - kAround),
                    kRestore);
      }
      index.begins.push_back(at);
      at += kAround + length;
    }
    index.first.push_back(index.begins.size());
  } catch (const Error& error) {
    throw error.within({.file = file.path(), .offset = at});
  }
}

std::vector<std::byte> start_of(const File& file) {
  std::vector<std::byte> start(std::min<std::uint64_t>(file.size(), kHeader));
  file.read(0, start);
  return start;
}

bool begins_with(std::span<const std::byte> bytes, unsigned first, unsigned second) {
  return bytes.size() >= 2 && bytes[0] == std::byte(first) && bytes[1] == std::byte(second);
}

/// What TensorFlow's GZIP and ZLIB begin with.
bool is_compressed(std::span<const std::byte> start) {
  return begins_with(start, 0x1f, 0x8b) || begins_with(start, 0x78, 0x9c) ||
         begins_with(start, 0x78, 0x01) || begins_with(start, 0x78, 0xda);
}

bool has_header(std::span<const std::byte> start) {
  try {
    return start.size() == kHeader && data_bytes(start) < std::uint64_t{1} << 48;
  } catch (const Error&) {
    return false;
  }
}

bool is_tfrecord(const FirstFile& first) {
  if (!first.file) return false;
  if (has_header(start_of(*first.file))) return true;
  // So that what is wrong with it can be told.
  return first.path.find(".tfrec") != std::string::npos;
}

void require_plain(const File& file) {
  const auto start = start_of(file);
  if (has_header(start) || !is_compressed(start)) return;
  throw Error(
      ErrorKind::unsupported, "the file is compressed as a whole: records in it have no places",
      "uncompress it (gunzip), or write it without compression_type", {.file = file.path()});
}

}  // namespace

std::uint64_t data_bytes(std::span<const std::byte> header) {
  std::uint64_t length = 0;
  std::uint32_t checksum = 0;
  std::memcpy(&length, header.data(), sizeof length);
  std::memcpy(&checksum, header.data() + sizeof length, sizeof checksum);
  if (masked_crc32c(header.first(sizeof length)) == checksum) return length;
  throw Error(ErrorKind::corrupt, "the length of a record does not fit its checksum", kRestore);
}

std::unique_ptr<DataSet> open_records(const std::string& text, DataFiles files,
                                      std::span<const FieldChoice> choices) {
  RecordIndex index;
  for (const auto& file : files) {
    require_plain(*file);
    find_records(*file, index);
  }
  return std::make_unique<RecordSet>(text, std::move(files), std::move(index), choices);
}

Format tfrecord_format() {
  return {.name = "tfrecord",
          .description =
              "TFRecord files: features of a tf.train.Example are parts; other records "
              "are samples as they are",
          .recognise = is_tfrecord,
          .open = [](const FormatRequest& request) {
            return open_records(request.text, request.open_files(), request.found.fields);
          }};
}

}  // namespace forebay::tfrecord
