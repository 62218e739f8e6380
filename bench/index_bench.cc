// What the index over LMDB leaves costs, without reading a byte of a data set.
//
//   index_bench [RECORDS]      10^7 unless told otherwise
//
// Records of 3,100 bytes, committed every 1,000, as Caffe's tools write them: replayed from a
// recipe, and the same leaves from a table; then a table of records of 0 to 40 KB. For each form:
// bytes of the sidecar, time to load it, time to the extents of the first batch of 256, time a
// lookup over an epoch of single lookups in random order and in batches in order, and the memory of
// the index after it. One JSON line a form.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "format/lmdb/leaf_index.hpp"
#include "format/lmdb/provenance/leaf_table.hpp"
#include "format/lmdb/provenance/recipe_leaves.hpp"
#include "format/lmdb/provenance/sidecar.hpp"

namespace forebay::lmdb {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// No page is looked at here.
class NoDamage final : public DamageExplainer {
 public:
  Error explain(PageNumber page, const std::string& fault) const override {
    return {ErrorKind::corrupt, fmt::format("page {}: {}", page, fault)};
  }
};

std::string key_of(std::uint64_t sample) { return fmt::format("{:08}", sample); }

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// Collects leaves with the keys "00000000", "00000001", ...
class TableMaker {
 public:
  void add(const LeafLayout& leaf) {
    const std::string first = key_of(sample_), last = key_of(sample_ + leaf.records - 1);
    builder_.add(SeenLeaf{leaf, bytes_of(first), bytes_of(last)});
    sample_ += leaf.records;
  }
  LeafTable finish() { return builder_.finish(); }

 private:
  LeafTableBuilder builder_{0};
  std::uint64_t sample_ = 0;
};

TreeFacts facts_for(std::uint64_t entries, std::uint64_t leaves) {
  return {.file = "bench",
          .fingerprint = fmt::format("bench:{}", entries),
          .entries = entries,
          .leaf_pages = leaves,
          .overflow_pages = 1,
          .page_size = 4096,
          .tree_flags = 0,
          .end_page = PageNumber{1} << 40};
}

/// Memory that is zero and not there until it is used, like sparse shared memory.
struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

void measure(const std::string& name, std::span<const std::byte> sidecar, const TreeFacts& facts) {
  nlohmann::ordered_json json{
      {"form", name}, {"records", facts.entries}, {"bytes", sidecar.size()}};
  const auto start = Clock::now();
  auto loaded = load_sidecar(sidecar, facts);
  if (!loaded) throw Error(ErrorKind::corrupt, loaded.problem);
  json["load_ms"] = seconds_since(start) * 1e3;
  const std::uint64_t size = required_bytes(*loaded.leaves, facts);
  const std::unique_ptr<void, FreeMemory> memory(std::calloc(1, size));
  const NoDamage no_damage;
  LeafIndex index(std::move(loaded.leaves), facts, no_damage,
                  {.bytes = {static_cast<std::byte*>(memory.get()), size}});
  std::vector<Extent> extents;
  index.extents(facts.entries / 2, 256, extents);
  json["first_batch_ms"] = seconds_since(start) * 1e3;

  std::mt19937_64 random(1);
  const auto epoch = Clock::now();
  for (std::uint64_t i = 0; i < facts.entries; ++i) {
    extents.clear();
    index.extents(random() % facts.entries, 1, extents);
  }
  const auto entries = static_cast<double>(facts.entries);
  json["random_lookup_ns"] = seconds_since(epoch) * 1e9 / entries;
  const auto in_order = Clock::now();
  for (std::uint64_t first = 0; first + 256 <= facts.entries; first += 256) {
    extents.clear();
    index.extents(first, 256, extents);
  }
  json["lookup_in_order_ns"] = seconds_since(in_order) * 1e9 / entries;
  json["memory_bytes"] = index.memory_bytes();
  fmt::print("{}\n", json.dump());
}

void measure_recipe_and_table(std::uint64_t records) {
  Recipe recipe;
  recipe.records = records;
  recipe.page_size = 4096;
  recipe.key_size = 8;
  recipe.value_size = 3100;
  recipe.commit_every = 1000;
  TableMaker maker;
  Replay replay(recipe);
  for (LeafLayout leaf; replay.next(leaf);) maker.add(leaf);
  const LeafTable table = maker.finish();
  const TreeFacts facts = facts_for(records, table.leaves());
  ByteWriter body;
  RecipeLeaves(recipe, table.keys()).write(body);
  measure("recipe", seal_sidecar(SidecarForm::recipe, facts.fingerprint, body.bytes()), facts);
  measure("table", table_sidecar(table, facts), facts);
}

/// As an appending writer lays them out, one transaction.
void measure_uneven(std::uint64_t records) {
  TableMaker maker;
  std::mt19937_64 random(2);
  PageNumber page = 2;
  for (std::uint64_t sample = 0; sample < records;) {
    std::vector<LeafRun> runs;
    const PageNumber leaf = page++;
    std::uint16_t slot = 0;
    for (std::size_t room = 4080; room >= 28 && sample < records; ++slot, ++sample) {
      const std::uint64_t length = random() % 40'000;
      const std::size_t node = length > 2022 ? 26 : 18 + length + length % 2;
      if (node > room) break;
      room -= node;
      if (length <= 2022) continue;
      const auto pages = static_cast<std::uint32_t>(overflow_pages(length, 4096));
      runs.push_back({page, pages, slot});
      page += pages;
    }
    maker.add({.page = leaf, .records = slot, .runs = runs});
  }
  const LeafTable table = maker.finish();
  const TreeFacts facts = facts_for(records, table.leaves());
  measure("table, lengths of 0 to 40 KB", table_sidecar(table, facts), facts);
}

}  // namespace
}  // namespace forebay::lmdb

int main(int argc, char** argv) {
  try {
    const std::uint64_t records = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000'000;
    forebay::lmdb::measure_recipe_and_table(records);
    forebay::lmdb::measure_uneven(records);
  } catch (const std::exception& error) {
    fmt::print(stderr, "index_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
