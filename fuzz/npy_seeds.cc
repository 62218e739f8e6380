// npy_seeds DIR: writes small .npy and .npz files as seeds for npy_fuzz.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/data_sets/made_sets.hpp"

namespace {

std::string npy(int version, const std::string& dictionary, std::size_t data) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  for (std::size_t i = 0; i < (version == 1 ? 2U : 4U); ++i) {
    text += static_cast<char>(dictionary.size() >> (8 * i));
  }
  return text + dictionary + std::string(data, 'x');
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: npy_seeds DIR\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const std::string x =
      npy(1, "{'descr': '>i2', 'fortran_order': False, 'shape': (4, 3), }  \n", 24);
  const std::string y = npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }  \n", 4);
  const std::string n = npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }  \n", 8);
  int number = 0;
  for (const std::string& seed :
       {x + y, forebay::test::zip_archive({{"x.npy", x}, {"y.npy", y}}),
        forebay::test::zip_archive({{"x.npy", x}, {"y.npy", y}, {"n.npy", n}, {"a.txt", "a"}}),
        npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3), }  \n", 60),
        npy(2, "{'descr': '>i2', 'fortran_order': False, 'shape': (7,), }\n", 14),
        npy(3, "{'descr': '|S3', 'fortran_order': False, 'shape': (2, 2), }\n", 12),
        npy(1, "{'descr': '|b1', 'fortran_order': True, 'shape': (), }\n", 1),
        npy(1, "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (0,), }\n", 0)}) {
    std::ofstream stream(folder / std::to_string(number++), std::ios::binary);
    stream << seed;
    if (!stream.flush()) return 1;
  }
  return 0;
}
