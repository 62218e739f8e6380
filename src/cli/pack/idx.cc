#include "cli/pack/idx.hpp"

#include <fmt/format.h>

#include <array>

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

}  // namespace forebay::pack
