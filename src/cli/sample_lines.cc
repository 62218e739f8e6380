#include "cli/sample_lines.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <iterator>

#include "forebay/packed_parts.hpp"

namespace forebay {

std::uint64_t digest(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string sample_line(const Sample& sample, std::uint64_t iteration, int rank,
                        const std::uint64_t* decoded, std::span<const std::string> parts) {
  std::string line = fmt::format(
      R"({{"epoch":{},"iteration":{},"rank":{},"position":{},"global":{},"sample":{},"key":")",
      sample.epoch, iteration, rank, sample.position, sample.global, sample.id);
  auto out = std::back_inserter(line);
  for (const std::byte byte : sample.key) fmt::format_to(out, "{:02x}", std::to_integer<int>(byte));
  fmt::format_to(out, R"(","bytes":{},"xxh3":"{:016x}","repeat":{})", sample.value.size(),
                 digest(sample.value), sample.repeat);
  if (decoded != nullptr) fmt::format_to(out, R"(,"decoded":"{:016x}")", *decoded);
  if (!parts.empty()) {
    const auto values = split_parts(sample.value, parts.size());
    for (std::size_t p = 0; p < parts.size(); ++p) {
      fmt::format_to(out, R"({}"{}":{{"bytes":{},"xxh3":"{:016x}"}})",
                     p == 0 ? R"(,"parts":{)" : ",", parts[p], values[p].size(), digest(values[p]));
    }
    line += "}";
  }
  line += "}\n";
  return line;
}

}  // namespace forebay
