// make_test_databases DIR: writes every standard database into DIR/<name>/ and prints one line
// each: the name, a tab, and the path to give to a reader.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "tests/support/lmdb_builder.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_test_databases DIR\n");
    return 2;
  }
  try {
    for (const auto& recipe : forebay::test::standard_databases()) {
      const std::string directory = std::string(argv[1]) + "/" + recipe.name;
      std::filesystem::remove_all(directory);
      const std::string path = recipe.builder.build(directory);
      std::printf("%s\t%s\n", recipe.name.c_str(), path.c_str());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_test_databases: %s\n", error.what());
    return 1;
  }
  return 0;
}
