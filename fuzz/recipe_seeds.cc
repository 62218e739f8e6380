// Writes valid inputs of recipe_fuzz into the directory given.
#include <fstream>
#include <string>

#include "format/lmdb/provenance/replay.hpp"

namespace {

using namespace forebay;

void write_seed(const std::string& path, const lmdb::Recipe& recipe, int leaves) {
  lmdb::Replay replay(recipe);
  lmdb::LeafLayout leaf;
  for (int i = 0; i < leaves; ++i) replay.next(leaf);
  const auto recipe_bytes = lmdb::to_bytes(recipe);
  const auto checkpoint = replay.checkpoint();
  std::ofstream file(path, std::ios::binary);
  file.put(static_cast<char>(recipe_bytes.size()));
  for (const auto& part : {recipe_bytes, checkpoint}) {
    file.write(reinterpret_cast<const char*>(part.data()),
               static_cast<std::streamsize>(part.size()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int number = 0;
  for (const std::uint32_t value : {10U, 1900U, 3000U, 200'000U}) {
    for (const std::uint64_t interval : {0U, 1U, 7U, 1000U}) {
      for (const char* name : {"", "train"}) {
        lmdb::Recipe recipe;
        recipe.records = 50'000;
        recipe.page_size = 4096U << (number % 4);
        recipe.key_size = 8;
        recipe.value_size = value;
        recipe.commit_every = interval;
        recipe.first_commit = number % 7 == 0 ? 3 : 0;
        recipe.append = number % 3 == 0;
        recipe.created_apart = number % 5 == 0;
        recipe.name = name;
        write_seed(std::string(argv[1]) + "/" + std::to_string(number), recipe, number);
        ++number;
      }
    }
  }
  return 0;
}
