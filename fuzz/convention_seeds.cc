// convention_seeds DIR: writes lists, counters, keys and a packed value as seeds for
// convention_fuzz.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

int main(int argc, char** argv) {
  using namespace std::string_literals;
  if (argc != 2) {
    std::fprintf(stderr, "usage: convention_seeds DIR\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  int number = 0;
  for (const std::string& seed :
       {"0001.png (480,480,3) 1\na/b 2.png (7, 8) 9\r\nc\n"s, "image-000000001"s, "__keys__"s,
        "1234"s, "\x80\x04\x95\x04\x00\x00\x00\x00\x00\x00\x00M\x39\x30."s, "\xcd\x01\x2c"s,
        "FBPS\x02\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00"
        "abc\x00\x00\x00\x00\x00z"s}) {
    std::ofstream stream(folder / std::to_string(number++), std::ios::binary);
    stream << seed;
    if (!stream.flush()) return 1;
  }
  return 0;
}
