// Guesses of pages, against layouts that are known, and the touching itself.
#include "read/walk/speculation.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>

#include "forebay/error.hpp"
#include "format/lmdb/database.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

std::vector<PageRange> ranges_of(const std::set<std::uint64_t>& pages) {
  std::vector<PageRange> ranges;
  for (const std::uint64_t page : pages) {
    if (!ranges.empty() && ranges.back().end() == page) {
      ++ranges.back().count;
    } else {
      ranges.push_back({page, 1});
    }
  }
  return ranges;
}

/// Leaf and overflow pages of every record of a database.
std::vector<std::set<std::uint64_t>> pages_of_records(lmdb::Database& database) {
  std::vector<std::set<std::uint64_t>> pages;
  lmdb::Cursor cursor = database.tree().first();
  for (bool more = cursor.valid(); more; more = database.tree().next(cursor)) {
    auto& mine = pages.emplace_back();
    mine.insert(cursor.leaf().page);
    const lmdb::Node node = database.tree().node(cursor);
    if (!node.is_overflow()) continue;
    const auto count = lmdb::overflow_pages(node.value_size, database.page_size());
    for (std::uint64_t k = 0; k < count; ++k) mine.insert(node.overflow_page() + k);
  }
  return pages;
}

struct Outcome {
  SpeculationFigures first;  ///< of the first window
  SpeculationFigures rest;   ///< of all others
  std::uint64_t used = 0;    ///< pages, in those
};

/// Root `me` of `roots` over one epoch and a half, in windows of `batch` samples.
Outcome speculate(const std::vector<std::set<std::uint64_t>>& pages, double pages_of_first,
                  std::uint64_t file_pages, int me, int roots, std::uint64_t batch) {
  Speculation speculation(*pages.front().begin(), file_pages, pages_of_first);
  Outcome outcome;
  const std::uint64_t share = batch / static_cast<std::uint64_t>(roots);
  const auto mine = static_cast<std::uint64_t>(me);
  for (std::uint64_t window = 0; window * batch + batch <= pages.size() * 3 / 2; ++window) {
    const std::uint64_t sample = (window * batch + mine * share) % pages.size();
    if (sample + share > pages.size()) continue;
    std::set<std::uint64_t> used;
    for (std::uint64_t k = 0; k < share; ++k) {
      used.insert(pages[sample + k].begin(), pages[sample + k].end());
    }
    const auto ranges = ranges_of(used);
    const SpeculationFigures figures = compare(speculation.guess(sample, share), ranges);
    SpeculationFigures& sum = window == 0 ? outcome.first : outcome.rest;
    sum.guessed += figures.guessed;
    sum.missed += figures.missed;
    sum.redundant += figures.redundant;
    if (window > 0) outcome.used += used.size();
    speculation.learn(sample, share, ranges);
  }
  return outcome;
}

/// Uniform records one after another: `pages` a record, a branch page after every `fan_out`.
std::vector<std::set<std::uint64_t>> uniform_layout(std::uint64_t records, std::uint64_t pages,
                                                    std::uint64_t fan_out) {
  std::vector<std::set<std::uint64_t>> layout(records);
  std::uint64_t page = 2;
  for (std::uint64_t record = 0; record < records; ++record) {
    if (record % fan_out == fan_out - 1) ++page;
    for (std::uint64_t k = 0; k < pages; ++k) layout[record].insert(page++);
  }
  return layout;
}

TEST(Speculation, UniformRecordsAreNeverMissedAfterTheFirstWindow) {
  std::mt19937_64 random(3);
  for (int round = 0; round < test::random_cases(100); ++round) {
    const std::uint64_t pages = 1 + random() % 8;
    const auto layout = uniform_layout(4000, pages, 1000000);
    const int roots = static_cast<int>(1 + random() % 8);
    const int me = static_cast<int>(random() % static_cast<std::uint64_t>(roots));
    const std::uint64_t batch = (8 + random() % 60) * static_cast<std::uint64_t>(roots);
    const Outcome outcome =
        speculate(layout, static_cast<double>(pages), 1 << 20, me, roots, batch);
    EXPECT_EQ(outcome.first.missed, 0U);
    EXPECT_EQ(outcome.rest.missed, 0U);
    // A page on either side, and one for the record of a neighbour.
    const std::uint64_t windows = 1 + 6000 / batch;
    EXPECT_LE(outcome.rest.redundant, windows * 4);
  }
}

TEST(Speculation, BranchPagesBetweenUniformRecordsCostLittle) {
  for (const std::uint64_t fan_out : {20U, 100U, 250U}) {
    const auto layout = uniform_layout(20000, 1, fan_out);
    for (int me = 0; me < 4; ++me) {
      const Outcome outcome = speculate(layout, 1.0, 1 << 20, me, 4, 400);
      EXPECT_LE(outcome.rest.missed, outcome.used / 50) << fan_out;
      EXPECT_LE(outcome.rest.redundant, outcome.used / 4) << fan_out;
    }
  }
}

struct Shape {
  const char* name;
  test::LmdbBuilder builder;
  double most_missed;  ///< share of the pages that are used
  double most_redundant;
};

TEST(Speculation, FindsMostPagesOfRealDatabases) {
  const test::TemporaryFolder folder;
  const std::vector<Shape> shapes = {
      {"appended", test::LmdbBuilder().appended(4000).values(3100).commit_every(1000), 0.2, 1.6},
      {"caffe", test::LmdbBuilder().in_order(4000).values(3100).commit_every(1000), 0.2, 1.6},
      {"small", test::LmdbBuilder().appended(20000).values(300), 0.02, 1.0},
      {"images", test::LmdbBuilder().in_order(1500).values(5000, 9000).commit_every(100), 0.05,
       1.2},
  };
  for (const Shape& shape : shapes) {
    auto database =
        lmdb::Database::open(shape.builder.build(folder.file(shape.name)), Engine::mmap);
    const auto pages = pages_of_records(database);
    lmdb::Cursor cursor = database.tree().first();
    const lmdb::Entry first = database.tree().entry(cursor);
    const double estimate =
        pages_of_record(first.key.size(), first.value.size(), database.page_size());
    for (int me = 0; me < 3; ++me) {
      const Outcome outcome = speculate(pages, estimate, database.last_page() + 1, me, 3, 300);
      const auto used = static_cast<double>(outcome.used);
      EXPECT_LE(static_cast<double>(outcome.rest.missed), used * shape.most_missed) << shape.name;
      EXPECT_LE(static_cast<double>(outcome.rest.redundant), used * shape.most_redundant)
          << shape.name;
    }
  }
}

TEST(Speculation, GuessesStayInsideTheFile) {
  Speculation speculation(2, 100, 3.5);
  for (std::uint64_t sample = 0; sample < 100; ++sample) {
    const PageRange guess = speculation.guess(sample, 10);
    EXPECT_LE(guess.end(), 100U);
    EXPECT_LE(guess.first, guess.end());
  }
  const std::vector<PageRange> far{{50, 1}, {99, 1}};
  speculation.learn(0, 1, far);
  EXPECT_LE(speculation.guess(1000000, 1000000).end(), 100U);
}

TEST(Speculation, RecordsPutIntoFreedPagesDoNotSpoilTheBounds) {
  Speculation speculation(2, 1 << 20, 1.0);
  const std::vector<PageRange> used{{500000, 1}, {102, 99}};
  speculation.learn(100, 100, used);
  EXPECT_DOUBLE_EQ(speculation.largest(), 0.99);
  EXPECT_EQ(speculation.guess(200, 100).first, 199U);
}

TEST(Speculation, RemembersPlacesOfTheEpochBefore) {
  Speculation speculation(2, 1 << 30, 1.0);
  for (std::uint64_t sample = 0; sample < 1000000; sample += 100) {
    const std::vector<PageRange> used{{2 + sample, 100}};
    speculation.learn(sample, 100, used);
  }
  const PageRange guess = speculation.guess(500000, 100);
  EXPECT_LE(guess.first, 500002U);
  EXPECT_GE(guess.end(), 500102U);
  EXPECT_LE(guess.count, 1500U) << "the distance to a known place stays short";
}

TEST(Speculation, CountsMissedAndRedundantPages) {
  const std::vector<PageRange> used{{5, 10}, {30, 2}};
  EXPECT_EQ(compare({10, 15}, used), (SpeculationFigures{15, 7, 10}));
  EXPECT_EQ(compare({0, 0}, used), (SpeculationFigures{0, 12, 0}));
}

TEST(Speculation, PagesOfARecordFollowFromItsSize) {
  EXPECT_DOUBLE_EQ(pages_of_record(8, 3100, 4096), 1 + 1.0 / 156);
  EXPECT_DOUBLE_EQ(pages_of_record(8, 2022, 4096), 0.5) << "the largest that stays in a leaf";
  EXPECT_GT(pages_of_record(8, 2023, 4096), 1.0);
  EXPECT_DOUBLE_EQ(pages_of_record(8, 100, 4096), 1.0 / 34);
}

TEST(Touch, ReadsPagesInsideTheFileOnly) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder.file("data"), test::counting_bytes(10 * 4096 + 5));
  for (const Engine engine : {Engine::mmap, Engine::pread}) {
    const auto file = open_file(folder.file("data"), engine);
    EXPECT_EQ(touch(*file, {2, 3}, 4096, {}), 3U);
    EXPECT_EQ(touch(*file, {8, 100}, 4096, {}), 3U);
    EXPECT_EQ(touch(*file, {8, ~std::uint64_t{0}}, 4096, {}), 3U);
    EXPECT_EQ(touch(*file, {11, 1}, 4096, {}), 0U);
    EXPECT_EQ(touch(*file, {0, 10}, 4096, [] { return true; }), 0U);
  }
}

TEST(Touch, AFileThatWasCutIsAnError) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder.file("data"), test::counting_bytes(20 * 4096));
  const auto file = open_file(folder.file("data"), Engine::mmap);
  std::filesystem::resize_file(folder.file("data"), 4096);
  EXPECT_THROW(touch(*file, {0, 20}, 4096, {}), Error);
}

}  // namespace
}  // namespace forebay
