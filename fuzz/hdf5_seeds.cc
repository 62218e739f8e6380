// hdf5_seeds DIR: writes small HDF5 files of many layouts as seeds for hdf5_fuzz.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "tests/support/hdf5_builder.hpp"

namespace {

using forebay::test::Hdf5Builder;
using forebay::test::Hdf5Recipe;

void write_seeds(const std::filesystem::path& folder) {
  const Hdf5Recipe plain{.name = "a", .shape = {20, 3}};
  const Hdf5Recipe chunks{.name = "b", .shape = {20, 3}, .chunk = {6, 2}, .written = 13};
  const Hdf5Recipe packed{.name = "g/c",
                          .shape = {20, 3},
                          .chunk = {6, 3},
                          .deflate = 6,
                          .shuffle = true,
                          .fletcher32 = true};
  const Hdf5Recipe compact{.name = "d", .shape = {20}, .compact = true, .bytes = true};
  const Hdf5Recipe sparse{
      .name = "e", .shape = {1 << 20, 3}, .chunk = {1, 3}, .grows = true, .written = 2};
  for (const bool latest : {false, true}) {
    const std::string suffix = latest ? "_latest" : "";
    const auto write = [&](const char* name, Hdf5Builder builder) {
      if (latest) builder.latest();
      builder.build((folder / (name + suffix)).string());
    };
    write("plain", Hdf5Builder().add(plain));
    write("chunks", Hdf5Builder().add(chunks));
    write("packed", Hdf5Builder().add(packed));
    write("compact", Hdf5Builder().add(compact));
    write("sparse", Hdf5Builder().add(sparse));
    write("samples", Hdf5Builder()
                         .add({.name = "s/1/x", .shape = {2, 3}})
                         .add({.name = "s/2/x", .shape = {2, 3}, .chunk = {2, 2}, .deflate = 1})
                         .add({.name = "s/10/x", .shape = {2, 3}, .compact = true}));
    write("all", Hdf5Builder().add(plain).add(chunks).add(packed).add(compact).user_block(512));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: hdf5_seeds DIR\n");
    return 2;
  }
  try {
    write_seeds(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hdf5_seeds: %s\n", error.what());
    return 1;
  }
  return 0;
}
