// tar_seeds DIR: small archives with every kind of header, for tar_fuzz.
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/data_sets/made_sets.hpp"

namespace {

using forebay::test::tar_member;

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string pax(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  return std::to_string(rest.size() + 2) + rest;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = std::string(argv[1]) + "/";
  const std::string end(1024, '\0');
  const std::string sample = tar_member("a/1.jpg", "pixels") + tar_member("a/1.cls", "7");
  write(folder + "plain", sample + tar_member("a/2.jpg", "") + tar_member("a/2.cls", "8") + end);
  write(folder + "gnu",
        tar_member("././@LongLink", std::string(120, 'n') + ".jpg", 'L') + sample + end);
  write(folder + "pax", tar_member("PaxHeader", pax("path", "long.jpg") + pax("size", "3"), 'x') +
                            tar_member("short.jpg", "abc") + end);
  write(folder + "global", tar_member("g", pax("comment", "x"), 'g') + sample);
  write(folder + "kinds", tar_member("d/", "", '5') + tar_member("l.jpg", "", '2') + sample + end);
  return 0;
}
