// zip_seeds DIR: small archives for zip_fuzz.
#include "tests/data_sets/made_sets.hpp"

int main(int argc, char** argv) {
  using namespace forebay::test;
  if (argc != 2) return 2;
  const std::string folder = std::string(argv[1]) + "/";
  const std::string plain = zip_archive({{"a/1.bin", "pixels"},
                                         {"a/1.cls", "7"},
                                         {"a/2.bin", ""},
                                         {"a/2.cls", "8"},
                                         {"d/", ""},
                                         {"README", "x"}});
  write_file(folder + "plain", plain);
  write_file(folder + "behind", "something in front" + plain + "behind");
  write_file(folder + "classes", zip_archive({{"r/b/1.jpg", "pixels"}, {"r/a/2.png", "more"}}));
  write_file(folder + "empty", zip_archive({}));
  return 0;
}
