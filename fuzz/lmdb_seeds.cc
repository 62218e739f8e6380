// lmdb_seeds DIR: writes small databases of many shapes as seeds for lmdb_fuzz.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "tests/support/lmdb_builder.hpp"

namespace {

using forebay::test::LmdbBuilder;
using forebay::test::NamedRecipe;

std::vector<NamedRecipe> seeds() {
  return {
      {"empty", LmdbBuilder().in_order(0)},
      {"one_record", LmdbBuilder().in_order(1)},
      {"two_levels", LmdbBuilder().in_order(60).values(100, 300)},
      {"overflow_runs", LmdbBuilder().random_order(6).values(0, 9000)},
      {"three_levels", LmdbBuilder().random_order(90).key_length(511).values(0, 20)},
      {"free_pages",
       LmdbBuilder().random_order(60).values(0, 1500).commit_every(9).delete_every(2)},
      {"updated", LmdbBuilder().in_order(30).values(0, 3000).commit_every(5).update_every(2)},
      {"integer_keys", LmdbBuilder().random_order(100).integer_keys(8).values(40)},
      {"named", LmdbBuilder().random_order(30).named("train").beside({"test"}).values(60)},
      {"compacted", LmdbBuilder().random_order(40).values(0, 900).compacted()},
      {"pages_of_8_KiB", LmdbBuilder().random_order(20).values(0, 5000).page_size(8192)},
  };
}

}  // namespace

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  if (argc != 2) {
    std::fprintf(stderr, "usage: lmdb_seeds DIR\n");
    return 2;
  }
  try {
    const fs::path corpus = argv[1];
    for (const NamedRecipe& seed : seeds()) {
      const fs::path scratch = corpus.string() + "-" + seed.name;
      fs::remove_all(scratch);
      seed.builder.build(scratch.string());
      fs::create_directories(corpus);
      fs::copy_file(scratch / "data.mdb", corpus / seed.name, fs::copy_options::overwrite_existing);
      fs::remove_all(scratch);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lmdb_seeds: %s\n", error.what());
    return 1;
  }
  return 0;
}
