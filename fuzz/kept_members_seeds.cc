// kept_members_seeds DIR: indexes of two small files, for kept_members_fuzz.
#include <fstream>
#include <string>

#include "format/kept_members.hpp"

int main(int argc, char** argv) {
  using namespace forebay;
  if (argc != 2) return 2;
  const auto write = [&](const std::string& name, std::span<const std::byte> bytes) {
    std::ofstream(std::string(argv[1]) + "/" + name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
  };
  FoundMembers found;
  for (std::uint32_t file = 0; file < 2; ++file) {
    for (std::uint64_t i = 0; i < 11; ++i) {
      found.begin_sample("sample-" + std::to_string(i));
      found.add("jpg", {.offset = 512 + i * 300, .bytes = 100 + i, .file = file});
      if (i % 3 != 0) found.add("cls", {.offset = 700 + i * 300, .bytes = 1, .file = file});
    }
    found.end_file();
  }
  found.note("something was left out");
  ByteWriter out;
  found.write(out);
  write("found", out.bytes());
  write("kept", kept_bytes("identity", found));
  return 0;
}
