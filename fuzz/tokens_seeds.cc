// tokens_seeds DIR: small indexes and arrays for tokens_fuzz.
#include "tests/data_sets/made_sets.hpp"

int main(int argc, char** argv) {
  using namespace forebay::test;
  if (argc != 2) return 2;
  const std::string folder = std::string(argv[1]) + "/";
  constexpr int kWidths[] = {1, 1, 2, 4, 8, 8, 4, 2};
  for (int type = 1; type <= 8; ++type) {
    const std::string head = std::string("MMIDIDX\0\0", 9) + little(1, 8) + little(type, 1);
    write_file(folder + "index" + std::to_string(type),
               head + little(2, 8) + little(2, 8) + little(7, 4) + little(4, 4) + little(0, 8) +
                   little(7 * kWidths[type - 1], 8) + little(0, 8) + little(2, 8) + content(1, 80));
  }
  std::string dict = "{'descr': '<u2', 'fortran_order': False, 'shape': (40,), }";
  dict.resize(118 - 1, ' ');
  write_file(folder + "array",
             std::string("\x93NUMPY\x01\x00\x76\x00", 10) + dict + "\n" + content(1, 80));
  return 0;
}
