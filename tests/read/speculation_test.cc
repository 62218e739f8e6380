// Guesses of pages, against what real trees need, and the touching itself.
#include "read/walk/speculation.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "forebay/error.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::LmdbBuilder;

/// A tree, and a root that speculates on it.
class Root {
 public:
  explicit Root(const LmdbBuilder& builder)
      : database_(lmdb::Database::open(builder.build(folder_.file("data")), Engine::mmap)),
        speculation_(database_) {}

  std::uint64_t entries() const { return database_.entries(); }
  lmdb::Database& database() { return database_; }
  Speculation& speculation() { return speculation_; }

  void overwrite_page(std::uint64_t page) {
    std::fstream file(folder_.file("data/data.mdb"), std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(page * database_.page_size()));
    file << std::string(database_.page_size(), 'x');
  }

  std::vector<PageRange> guess(std::uint64_t sample, std::uint64_t count) {
    GuessedPages pages;
    speculation_.guess(sample, count, pages);
    pages.leaves.insert(pages.leaves.end(), pages.values.begin(), pages.values.end());
    return joined(pages.leaves);
  }

  lmdb::Cursor at(std::uint64_t sample) {
    lmdb::Cursor cursor;
    database_.tree().seek_record(cursor, sample);
    return cursor;
  }

  /// Leaves and values of the samples, and the leaf of the next, where the walk ends.
  std::vector<PageRange> used(std::uint64_t sample, std::uint64_t count) {
    std::vector<PageRange> pages;
    lmdb::Cursor cursor = at(sample);
    for (std::uint64_t k = 0; k <= count && cursor.valid(); ++k) {
      pages.push_back({cursor.leaf().page, 1});
      const lmdb::Node node = database_.tree().node(cursor);
      if (k < count && node.is_overflow()) {
        pages.push_back(
            {node.overflow_page(), lmdb::overflow_pages(node.value_size, database_.page_size())});
      }
      database_.tree().next(cursor);
    }
    return joined(pages);
  }

  SpeculationFigures read(std::uint64_t sample, std::uint64_t count) {
    const SpeculationFigures figures = compare(guess(sample, count), used(sample, count));
    speculation_.learn(at(sample), at(sample + count - 1));
    return figures;
  }

 private:
  test::TemporaryFolder folder_;
  lmdb::Database database_;
  Speculation speculation_;
};

struct Outcome {
  SpeculationFigures first;  ///< of the first window
  SpeculationFigures rest;   ///< of all others
  std::uint64_t used() const { return rest.guessed - rest.redundant + rest.missed; }
};

/// Root `me` of `roots` over one epoch and a half, in windows of `batch` samples.
Outcome speculate(const LmdbBuilder& builder, std::uint64_t me, std::uint64_t roots,
                  std::uint64_t batch) {
  Root root(builder);
  Outcome outcome;
  const std::uint64_t share = batch / roots;
  for (std::uint64_t window = 0; (window + 1) * batch <= root.entries() * 3 / 2; ++window) {
    const std::uint64_t sample = (window * batch + me * share) % root.entries();
    if (sample + share > root.entries()) continue;
    const SpeculationFigures figures = root.read(sample, share);
    SpeculationFigures& sum = window == 0 ? outcome.first : outcome.rest;
    sum.guessed += figures.guessed;
    sum.missed += figures.missed;
    sum.redundant += figures.redundant;
  }
  return outcome;
}

TEST(Speculation, UniformRecordsAreFoundAndNoOthers) {
  std::mt19937_64 random(3);
  for (int round = 0; round < test::random_cases(20); ++round) {
    const std::uint64_t bytes = round % 2 == 0 ? 50 + random() % 1900 : 2100 + random() % 6000;
    const std::uint64_t roots = 1 + random() % 8;
    const std::uint64_t batch = (1 + random() % 60) * roots;
    for (const auto& builder :
         {LmdbBuilder().appended(1500), LmdbBuilder().in_order(1500).commit_every(200)}) {
      const Outcome outcome =
          speculate(LmdbBuilder(builder).values(bytes), random() % roots, roots, batch);
      EXPECT_EQ(outcome.first.missed + outcome.rest.missed, 0U) << bytes;
      EXPECT_EQ(outcome.first.redundant + outcome.rest.redundant, 0U) << bytes;
    }
  }
}

struct Shape {
  const char* name;
  LmdbBuilder builder;
  double most_missed;  ///< share of the pages that are used
  double most_redundant;
};

TEST(Speculation, FindsMostPagesOfRealDatabases) {
  const std::vector<Shape> shapes = {
      {"appended", LmdbBuilder().appended(4000).values(3100).commit_every(1000), 0, 0},
      {"caffe", LmdbBuilder().in_order(4000).values(3100).commit_every(1000), 0, 0},
      {"small", LmdbBuilder().appended(20000).values(300), 0, 0},
      {"images", LmdbBuilder().in_order(1500).values(5000, 9000).commit_every(100), 0.02, 0.1},
      {"freed", LmdbBuilder().in_order(1500).values(6000).update_every(3).commit_every(100), 0.02,
       0.1},
      {"words", LmdbBuilder().in_order(20000).values(20, 400).file_name_keys(), 0.05, 0.5},
      {"random", LmdbBuilder().random_order(3000).values(3100).commit_every(10), 0.2, 1.2},
  };
  for (const Shape& shape : shapes) {
    for (std::uint64_t me = 0; me < 3; ++me) {
      const Outcome outcome = speculate(shape.builder, me, 3, 300);
      const auto used = static_cast<double>(outcome.used());
      EXPECT_LE(static_cast<double>(outcome.rest.missed), used * shape.most_missed) << shape.name;
      EXPECT_LE(static_cast<double>(outcome.rest.redundant), used * shape.most_redundant)
          << shape.name;
    }
  }
}

TEST(Speculation, GuessesStayInsideTheFile) {
  Root root(LmdbBuilder().appended(100).values(3000));
  for (const std::uint64_t sample : {0, 50, 99, 1000000}) {
    for (const std::uint64_t count : {0, 1, 1000000}) {
      for (const PageRange& range : root.guess(sample, count)) {
        EXPECT_LE(range.end(), root.database().last_page() + 1);
      }
    }
  }
}

TEST(Speculation, BoundsShrinkAgain) {
  Root root(LmdbBuilder().appended(8000).values(300));
  const double even = root.speculation().most();
  lmdb::Cursor wrong = root.at(400);
  wrong.sample = 700;  // as if leaves before it were fuller
  root.speculation().learn(wrong, root.at(400));
  EXPECT_GT(root.speculation().most(), even);
  for (std::uint64_t sample = 700; sample < 4000; sample += 300) root.read(sample, 20);
  EXPECT_EQ(root.speculation().most(), even);
  EXPECT_EQ(root.speculation().fewest(), even);
}

TEST(Speculation, ADamagedPageEndsTheGuessAndIsLeftToTheWalk) {
  Root root(LmdbBuilder().appended(2000).values(300));
  const std::uint64_t damaged = root.at(1000).leaf().page;
  root.overwrite_page(damaged);
  const auto pages = root.guess(900, 200);
  ASSERT_FALSE(pages.empty());
  EXPECT_LE(pages.back().end(), damaged);
  EXPECT_THROW(root.at(1000), Error);
}

TEST(Speculation, OfNoRecordsThereAreNoPages) {
  Root root(LmdbBuilder().in_order(10).delete_all());
  EXPECT_TRUE(root.guess(0, 10).empty());
}

TEST(Speculation, CountsMissedAndRedundantPages) {
  const std::vector<PageRange> used{{5, 10}, {30, 2}};
  const auto of = [&used](std::vector<PageRange> guess) { return compare(guess, used); };
  EXPECT_EQ(of({{10, 15}}), (SpeculationFigures{15, 7, 10}));
  EXPECT_EQ(of({}), (SpeculationFigures{0, 12, 0}));
  EXPECT_EQ(of({{0, 6}, {7, 1}, {14, 17}, {40, 1}}), (SpeculationFigures{25, 8, 21}));
}

TEST(Speculation, RangesAreJoined) {
  EXPECT_EQ(joined({{7, 1}, {5, 2}, {20, 5}, {5, 1}, {21, 2}}),
            (std::vector<PageRange>{{5, 3}, {20, 5}}));
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
  test::write_bytes(folder.file("data"), test::counting_bytes(std::size_t{20} * 4096));
  const auto file = open_file(folder.file("data"), Engine::mmap);
  std::filesystem::resize_file(folder.file("data"), 4096);
  EXPECT_THROW(touch(*file, {0, 20}, 4096, {}), Error);
}

}  // namespace
}  // namespace forebay
