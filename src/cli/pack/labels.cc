#include "cli/pack/labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "forebay/error.hpp"
#include "program/output.hpp"

namespace forebay::pack {
namespace {

constexpr std::byte kUnsignedBytes{0x08};
constexpr std::size_t kMaxDimensions = 4;

std::uint32_t big_endian(const std::byte* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return value;
}

}  // namespace

bool is_idx(InputFile& file) {
  std::array<std::byte, 4> magic{};
  try {
    file.read(0, magic);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::corrupt) return false;  // shorter than a header
    throw;
  }
  return magic[0] == std::byte{0} && magic[1] == std::byte{0} && magic[2] >= kUnsignedBytes &&
         magic[2] <= std::byte{0x0e};
}

IdxHeader read_idx_header(InputFile& file) {
  const Where where = at_file(file.path(), 0);
  if (!is_idx(file)) {
    throw Error(ErrorKind::corrupt, "not an IDX file", "name the images file of MNIST's format",
                where);
  }
  std::array<std::byte, 4> magic{};
  file.read(0, magic);
  const auto dimensions = std::to_integer<std::size_t>(magic[3]);
  if (magic[2] != kUnsignedBytes || dimensions == 0 || dimensions > kMaxDimensions) {
    throw Error(ErrorKind::unsupported,
                fmt::format("IDX elements of type {:#04x} in {} dimensions",
                            std::to_integer<unsigned>(magic[2]), dimensions),
                "only bytes in 1 to 4 dimensions are read", where);
  }
  std::vector<std::byte> sizes(4 * dimensions);
  file.read(magic.size(), sizes);
  IdxHeader header{.dimensions = {}, .bytes = magic.size() + sizes.size()};
  for (std::size_t i = 0; i < dimensions; ++i) {
    header.dimensions.push_back(big_endian(sizes.data() + 4 * i));
  }
  return header;
}

namespace {

constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 32;

std::vector<std::int32_t> read_text_labels(const std::string& path) {
  const auto bytes = read_file(path, kMaxTextBytes);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::int32_t> labels;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    auto line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    std::int32_t label = 0;
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), label);
    if (parsed.ec != std::errc{} || parsed.ptr != line.data() + line.size()) {
      throw Error(
          ErrorKind::corrupt,
          fmt::format("line {} is not a label: '{}'", labels.size() + 1, line.substr(0, 40)),
          "write one whole number a line, or give an IDX file", at_file(path));
    }
    labels.push_back(label);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return labels;
}

// In pieces, so that a header that claims too much runs into the end of the file, not of memory.
std::vector<std::int32_t> read_idx_labels(InputFile& file, const IdxHeader& header) {
  std::vector<std::byte> piece(1 << 16);
  std::vector<std::int32_t> labels;
  while (labels.size() < header.dimensions[0]) {
    piece.resize(std::min<std::size_t>(piece.size(), header.dimensions[0] - labels.size()));
    file.read(header.bytes + labels.size(), piece);
    for (const std::byte b : piece) labels.push_back(std::to_integer<std::int32_t>(b));
  }
  file.check_end(header.bytes + labels.size());
  return labels;
}

}  // namespace

std::vector<std::int32_t> read_labels(const std::string& path) {
  InputFile file(path);
  if (!is_idx(file)) return read_text_labels(path);
  const IdxHeader header = read_idx_header(file);
  if (header.dimensions.size() != 1) {
    throw Error(
        ErrorKind::corrupt,
        fmt::format("an IDX file of {} dimensions holds no labels", header.dimensions.size()),
        "name the labels file with --labels", at_file(path));
  }
  return read_idx_labels(file, header);
}

void check_label_count(const std::vector<std::int32_t>& labels, std::uint64_t records,
                       const std::string& path) {
  if (labels.size() == records) return;
  throw Error(ErrorKind::corrupt, fmt::format("{} labels for {} records", labels.size(), records),
              "images and labels must belong together: see --labels", at_file(path));
}

}  // namespace forebay::pack
