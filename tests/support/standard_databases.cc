#include "tests/support/lmdb_builder.hpp"

namespace forebay::test {
namespace {

using Recipes = std::vector<NamedRecipe>;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHeader = 16;

/// Around the size at which a value leaves the leaf: 8 + key + value > 2038 (pages of 4 KiB).
std::vector<std::size_t> around_overflow(std::size_t key_length) {
  const std::size_t edge = 2030 - key_length;
  std::vector<std::size_t> sizes;
  for (std::size_t size = edge - 4; size <= edge + 4; ++size) sizes.push_back(size);
  return sizes;
}

/// Around whole pages of an overflow run.
std::vector<std::size_t> around_pages() {
  std::vector<std::size_t> sizes;
  for (std::size_t pages = 1; pages <= 5; ++pages) {
    const std::size_t edge = pages * kPage - kHeader;
    for (std::size_t size = edge - 3; size <= edge + 3; ++size) sizes.push_back(size);
  }
  return sizes;
}

void add_orders(Recipes& recipes) {
  recipes.push_back({"empty", LmdbBuilder().in_order(0)});
  recipes.push_back({"one_record", LmdbBuilder().in_order(1)});
  recipes.push_back({"two_records", LmdbBuilder().in_order(2).values(3000)});
  recipes.push_back({"in_order", LmdbBuilder().in_order(2000)});
  recipes.push_back({"appended", LmdbBuilder().appended(2000).values(300)});
  recipes.push_back({"appended_commit_each", LmdbBuilder().appended(400).commit_every(1)});
  recipes.push_back({"reverse_order", LmdbBuilder().reverse_order(1500).values(10, 900)});
  recipes.push_back({"random_order", LmdbBuilder().random_order(2000).values(0, 1500)});
  recipes.push_back(
      {"random_commit_each", LmdbBuilder().random_order(500).values(0, 6000).commit_every(1)});
  recipes.push_back(
      {"as_caffe_writes", LmdbBuilder().in_order(3000).values(3100).commit_every(1000)});
  recipes.push_back(
      {"as_caffe_writes_images",
       LmdbBuilder().random_order(700).file_name_keys().values(500, 9000).commit_every(100)});
  recipes.push_back({"writable_map", LmdbBuilder()
                                         .random_order(900)
                                         .values(0, 5000)
                                         .commit_every(50)
                                         .map_size(16 << 20)
                                         .writable_map()});
  recipes.push_back({"held_reader", LmdbBuilder()
                                        .random_order(1500)
                                        .values(0, 4000)
                                        .commit_every(10)
                                        .update_every(3)
                                        .held_reader()});
}

void add_keys(Recipes& recipes) {
  recipes.push_back(
      {"keys_1_to_511", LmdbBuilder().random_order(1200).key_lengths(1, 511).values(0, 700)});
  recipes.push_back({"keys_of_511", LmdbBuilder().in_order(300).key_length(511).values(50)});
  recipes.push_back({"keys_of_1", LmdbBuilder().random_order(256).key_length(1).values(0, 5000)});
  recipes.push_back(
      {"integer_keys_4", LmdbBuilder().random_order(1500).integer_keys(4).values(60, 90)});
  recipes.push_back(
      {"integer_keys_8", LmdbBuilder().random_order(1500).integer_keys(8).values(0, 3000)});
  recipes.push_back({"reverse_keys", LmdbBuilder().random_order(800).reverse_keys().values(200)});
  recipes.push_back({"deep_tree", LmdbBuilder().random_order(3000).key_length(511).values(0, 40)});
}

void add_values(Recipes& recipes) {
  recipes.push_back({"zero_length_values", LmdbBuilder().random_order(700).values(0)});
  recipes.push_back(
      {"some_zero_length", LmdbBuilder().in_order(500).value_sizes({0, 900, 0, 5000})});
  recipes.push_back(
      {"around_overflow", LmdbBuilder().in_order(600).value_sizes(around_overflow(8))});
  recipes.push_back(
      {"around_overflow_keys_100",
       LmdbBuilder().random_order(450).key_length(100).value_sizes(around_overflow(100))});
  recipes.push_back({"around_overflow_keys_511", LmdbBuilder()
                                                     .random_order(270)
                                                     .key_length(511)
                                                     .value_sizes(around_overflow(511))
                                                     .commit_every(1)});
  recipes.push_back({"around_pages", LmdbBuilder().random_order(350).value_sizes(around_pages())});
  recipes.push_back({"around_pages_commit_each",
                     LmdbBuilder().in_order(210).value_sizes(around_pages()).commit_every(1)});
  recipes.push_back(
      {"large_value", LmdbBuilder().in_order(5).value_sizes({100, 9'000'000, 3000, 7, 300'000})});
  recipes.push_back({"mixed_sizes", LmdbBuilder().random_order(600).values(0, 40'000)});
}

void add_changes(Recipes& recipes) {
  recipes.push_back(
      {"deletions",
       LmdbBuilder().random_order(2000).values(0, 3000).delete_every(7).commit_every(100)});
  recipes.push_back(
      {"deletions_refilled",
       LmdbBuilder().random_order(1500).values(0, 5000).delete_every(3).refill().commit_every(20)});
  recipes.push_back({"deletions_commit_each",
                     LmdbBuilder().in_order(400).values(2500).delete_every(2).commit_every(1)});
  recipes.push_back(
      {"few_left", LmdbBuilder().in_order(2000).values(400).keep_every(500).commit_every(50)});
  recipes.push_back({"all_deleted", LmdbBuilder().in_order(500).values(3000).delete_all()});
  recipes.push_back(
      {"all_deleted_refilled",
       LmdbBuilder().in_order(500).values(3000).delete_all().refill().commit_every(7)});
  recipes.push_back(
      {"updated",
       LmdbBuilder().random_order(1200).values(0, 9000).update_every(2).commit_every(30)});
  recipes.push_back({"compacted", LmdbBuilder().random_order(1000).values(0, 5000).compacted()});
  recipes.push_back({"compacted_after_deletions", LmdbBuilder()
                                                      .random_order(1000)
                                                      .values(0, 5000)
                                                      .delete_every(4)
                                                      .commit_every(9)
                                                      .compacted()});
}

void add_environments(Recipes& recipes) {
  recipes.push_back({"named", LmdbBuilder().random_order(600).values(0, 3000).named("train")});
  recipes.push_back({"named_among_others", LmdbBuilder()
                                               .random_order(600)
                                               .values(100)
                                               .named("train")
                                               .beside({"test", "validation", "meta"})
                                               .commit_every(11)});
  recipes.push_back({"named_integer_keys",
                     LmdbBuilder().random_order(600).integer_keys(8).named("by id").values(50)});
  recipes.push_back({"single_file", LmdbBuilder().in_order(800).values(900).single_file()});
  recipes.push_back({"single_file_named",
                     LmdbBuilder().random_order(300).values(4000).single_file().named("a#b")});
  recipes.push_back({"hash#in#path", LmdbBuilder().in_order(100).named("train")});
  recipes.push_back(
      {"sparse_file", LmdbBuilder().in_order(900).values(1000).file_size(std::uint64_t{8} << 30)});
  recipes.push_back(
      {"pages_of_8_KiB",
       LmdbBuilder().random_order(900).values(0, 12'000).commit_every(40).page_size(8192)});
  recipes.push_back(
      {"pages_of_16_KiB",
       LmdbBuilder().random_order(900).values(0, 30'000).delete_every(5).refill().page_size(
           16384)});
  recipes.push_back(
      {"pages_of_32_KiB", LmdbBuilder().in_order(900).values(0, 40'000).page_size(32768)});
  recipes.push_back({"pages_of_32_KiB_small_values",
                     LmdbBuilder().random_order(9000).values(4).page_size(32768)});
}

}  // namespace

std::vector<NamedRecipe> standard_databases() {
  Recipes recipes;
  add_orders(recipes);
  add_keys(recipes);
  add_values(recipes);
  add_changes(recipes);
  add_environments(recipes);
  return recipes;
}

}  // namespace forebay::test
