// lmdb_oracle PATH[#NAME]: one JSON line a record, in the order of liblmdb's own cursor:
//   {"sample":0,"key":"<hex>","bytes":3100,"xxh3":"<16 hex>"}
// Knows nothing of Forebay's reader, which is compared with it.
#include <xxhash.h>

#include <cinttypes>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "tests/support/lmdb_builder.hpp"

namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  char digits[3];
  for (const unsigned char byte : bytes) {
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

/// Splits at the last '#' whose left side exists, unless the whole exists.
void split(const std::string& text, std::string& path, std::string& name) {
  path = text;
  for (auto at = text.size(); !std::filesystem::exists(path) && at > 0;) {
    at = text.rfind('#', at - 1);
    if (at == std::string::npos || at == 0) break;
    path = text.substr(0, at);
    name = text.substr(at + 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: lmdb_oracle PATH[#NAME]\n");
    return 2;
  }
  std::string path;
  std::string name;
  split(argv[1], path, name);
  try {
    std::uint64_t sample = 0;
    forebay::test::visit_with_liblmdb(path, name, [&](const forebay::test::OracleRecord& record) {
      const std::uint64_t hash = XXH3_64bits(record.value.data(), record.value.size());
      std::printf("{\"sample\":%" PRIu64 ",\"key\":\"%s\",\"bytes\":%zu,\"xxh3\":\"%016" PRIx64
                  "\"}\n",
                  sample++, hex(record.key).c_str(), record.value.size(), hash);
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lmdb_oracle: %s\n", error.what());
    return 1;
  }
  return 0;
}
