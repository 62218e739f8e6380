// stripes_seeds DIR: writes answers of Lustre as seeds for stripes_fuzz.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/support/lustre_answers.hpp"

int main(int argc, char** argv) {
  using namespace forebay::test;
  if (argc != 2) {
    std::fprintf(stderr, "usage: stripes_seeds DIR\n");
    return 2;
  }
  constexpr std::uint64_t kFirst = 64 << 20, kEnd = std::numeric_limits<std::uint64_t>::max();
  LustreAnswer answers[] = {plain_layout(1 << 20, 8), plain_layout(4 << 20, 1, true),
                            composite_layout({{0, kFirst, plain_layout(1 << 20, 1)},
                                              {kFirst, kEnd, plain_layout(4 << 20, 4)}})};
  int number = 0;
  for (LustreAnswer& answer : answers) {
    const auto& bytes = answer.bytes();
    std::ofstream(std::filesystem::path(argv[1]) / std::to_string(number++), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  return 0;
}
