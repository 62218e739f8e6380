// What is read, how often it is decoded, and that every way of reading gives the same bytes.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/format/hdf5/hdf5_file.hpp"
#include "tests/support/scale.hpp"

namespace forebay::test {
namespace {

const Hdf5Recipe kContiguous{.name = "x", .shape = {500, 6}, .native = true};
const Hdf5Recipe kPacked{.name = "x",
                         .shape = {500, 6},
                         .chunk = {32, 6},
                         .deflate = 6,
                         .shuffle = true,
                         .fletcher32 = true};

TEST(Hdf5Reading, ConsecutiveContiguousSamplesAreOneReadAField) {
  Hdf5Recipe label{.name = "label", .shape = {500}, .native = true};
  // Something between the two keeps them from being joined into one read.
  const Hdf5Recipe between{.name = "m", .shape = {100000}, .native = true};
  const Hdf5File file(Hdf5Builder().add(kContiguous).add(between).add(label));
  const auto source = file.open("#x,label");
  SampleReader reader(*source, {});
  for (std::uint64_t first = 0; first < 500; first += 100) {
    const auto ids = ids_from(first, 100);
    EXPECT_LE(source->plan(ids)->extents().size(), 2U);
    EXPECT_EQ(source->plan(ids)->units(), 0U) << "native numbers are used where they lie";
    const std::uint64_t before = reader.counters().requests;
    reader.read(ids);
    EXPECT_LE(reader.counters().requests - before, 2U);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(copy_of(reader.part(i, 0)), hdf5_row(kContiguous, ids[i]));
      ASSERT_EQ(copy_of(reader.part(i, 1)), hdf5_row(label, ids[i]));
    }
  }
  EXPECT_EQ(reader.counters().bytes, 500U * (12 + 2));
}

TEST(Hdf5Reading, EveryChunkIsReadAndDecodedOnceAGroup) {
  const Hdf5File file(kPacked);
  const auto source = file.open();
  SampleReader reader(*source, {});
  for (std::uint64_t first = 0; first < 500; first += 64) {
    reader.read(ids_from(first, std::min<std::uint64_t>(64, 500 - first)));
  }
  EXPECT_EQ(source->counters().chunks, 16U);
  EXPECT_EQ(source->counters().bytes_decoded, 16U * 32 * 12);

  // A list in any order, with repeats, is still one decoding a chunk.
  std::vector<std::uint64_t> ids;
  for (std::uint64_t i = 0; i < 1500; ++i) ids.push_back(i * 7919 % 500);
  EXPECT_EQ(read_field(*source, ids), rows_of(kPacked, ids));
  EXPECT_EQ(source->counters().chunks, 32U);
}

TEST(Hdf5Reading, UnfilteredChunksAreReadByRows) {
  const Hdf5Recipe recipe{.name = "x", .shape = {40, 6}, .chunk = {10, 6}, .native = true};
  const Hdf5File file(recipe);
  const auto source = file.open();
  const std::vector<std::uint64_t> ids{3, 4, 5, 17};
  const auto plan = source->plan(ids);
  ASSERT_EQ(plan->extents().size(), 2U);
  EXPECT_EQ(plan->extents()[0].length, 3U * 12);
  EXPECT_EQ(plan->extents()[1].length, 12U);
  EXPECT_EQ(plan->units(), 0U);
  EXPECT_EQ(read_field(*source, ids), rows_of(recipe, ids));
}

std::vector<Hdf5Recipe> all_layouts() {
  return {
      kContiguous,
      kPacked,
      {.name = "x", .shape = {77, 5, 3}},
      {.name = "x", .shape = {77, 5, 3}, .chunk = {10, 2, 2}},
      {.name = "x", .shape = {77, 5, 3}, .chunk = {10, 2, 2}, .deflate = 1},
      {.name = "x", .shape = {77, 5, 3}, .chunk = {10, 5, 3}, .grows = true},
      {.name = "x", .shape = {77, 5, 3}, .chunk = {77, 1, 3}, .fletcher32 = true, .bytes = true},
      {.name = "x",
       .shape = {77, 5, 3},
       .chunk = {8, 5, 2},
       .deflate = 9,
       .edges_unfiltered = true},
      {.name = "x",
       .shape = {77, 5},
       .chunk = {9, 5},
       .shuffle = true,
       .native = true,
       .written = 30},
      {.name = "x", .shape = {77, 5}, .native = true, .written = 0},
      // Few chunks in a large grid.
      {.name = "x", .shape = {770, 5}, .chunk = {1, 5}, .written = 20},
      {.name = "x", .shape = {77, 5, 3}, .chunk = {2, 2, 2}, .grows = true, .written = 4},
      {.name = "x", .shape = {77, 5}, .compact = true},
      {.name = "x", .shape = {77, 5}, .chunk = {77, 5}, .deflate = 4},
      {.name = "x", .shape = {77, 5}, .chunk = {10, 3}, .early = true},
      {.name = "x", .shape = {77, 5}, .early = true, .written = 20},
      {.name = "x", .shape = {77}, .chunk = {16}, .deflate = 4},
  };
}

TEST(Hdf5Reading, EveryLayoutEngineAndFileVersionGivesTheSameBytes) {
  std::mt19937_64 random(4);
  for (const Hdf5Recipe& recipe : all_layouts()) {
    for (const bool latest : {false, true}) {
      Hdf5Builder builder;
      builder.add(recipe).user_block(latest ? 1024 : 0);
      if (latest) builder.latest();
      const Hdf5File file(builder);
      std::vector<std::uint64_t> ids = ids_from(0, recipe.shape[0]);
      for (int i = 0; i < random_cases(100); ++i) ids.push_back(random() % recipe.shape[0]);
      std::shuffle(ids.begin(), ids.end(), random);
      const auto expected = rows_of(recipe, ids);
      for (const Engine engine : {Engine::pread, Engine::mmap}) {
        const auto source = file.open("", engine);
        ASSERT_EQ(read_field(*source, ids, 0, engine), expected)
            << source->facts().stored[0].how << " latest " << latest;
      }
    }
  }
}

TEST(Hdf5Reading, UnitsDecodeInManyThreads) {
  for (const Hdf5Recipe& recipe : all_layouts()) {
    const Hdf5File file(recipe);
    const auto source = file.open();
    const auto ids = ids_from(0, recipe.shape[0]);
    const auto plan = source->plan(ids);
    const auto reads = place_extents(plan->extents(), 1 << 20);
    std::vector<std::byte> memory;
    for (const PlacedExtent& read : reads) {
      memory.resize(read.place + read.extent.length);
      source->files()[0]->read(read.extent.offset,
                               std::span(memory).subspan(read.place, read.extent.length));
    }
    const PlacedBytes bytes(reads, memory);
    std::vector<std::byte> scratch(plan->scratch_bytes());
    std::atomic<std::size_t> next = 0;
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
          DecodeSpace space;
          for (std::size_t unit = next++; unit < plan->units(); unit = next++) {
            plan->decode(unit, bytes, scratch, space);
          }
        });
      }
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(copy_of(plan->part(i, 0, bytes, scratch)), hdf5_row(recipe, i));
    }
  }
}

TEST(Hdf5Reading, SeveralThreadsMayOpenAtOnce) {
  const Hdf5File file(kPacked);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const auto ids = ids_from(0, 500);
        EXPECT_EQ(read_field(*file.open(), ids), rows_of(kPacked, ids));
      }
    });
  }
}

TEST(Hdf5Reading, ASourceThatChangedIsNoticedBeforeDelivery) {
  const Hdf5File file(kContiguous);
  const auto source = file.open();
  SampleReader reader(*source, {});
  reader.read(ids_from(0, 10));
  std::filesystem::last_write_time(
      file.path(), std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_EQ(error_from([&] { reader.read(ids_from(0, 10)); }).kind(), ErrorKind::changed);
}

}  // namespace
}  // namespace forebay::test
