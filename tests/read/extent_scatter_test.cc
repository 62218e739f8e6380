// Where records lie, as one root tells the others: against the tree, and against damage.
#include "read/walk/extent_scatter.hpp"

#include <gtest/gtest.h>

#include <random>

#include "forebay/error.hpp"
#include "tests/format/lmdb/every_database.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using lmdb::Database;

/// The records of a piece, read from the file by page numbers alone.
std::vector<test::OracleRecord> records_of(Database& database, const LocatedPiece& piece) {
  std::vector<test::OracleRecord> records;
  for (const LocatedLeaf& leaf : piece.leaves) {
    const lmdb::Page page = database.pages().tree_page(leaf.page);
    EXPECT_EQ(page.count(), leaf.records);
    std::size_t next_run = 0;
    for (unsigned slot = 0; slot < page.count(); ++slot) {
      const lmdb::Node node = page.node(slot);
      const std::uint64_t sample = leaf.first_sample + slot;
      test::OracleRecord record{lmdb::to_text(node.key), lmdb::to_text(node.data)};
      if (node.is_overflow()) {
        EXPECT_LT(next_run, leaf.runs.size());
        const lmdb::LeafRun& run = leaf.runs[next_run++];
        EXPECT_EQ(run.slot, slot);
        EXPECT_EQ(run.page, node.overflow_page());
        EXPECT_EQ(run.pages, lmdb::overflow_pages(node.value_size, database.page_size()));
        record.value = lmdb::to_text(database.pages().value(run.page, node.value_size));
      }
      if (sample < piece.first_sample || sample >= piece.first_sample + piece.count) continue;
      records.push_back(record);
    }
    EXPECT_EQ(next_run, leaf.runs.size());
  }
  return records;
}

using ExtentScatter = lmdb::EveryDatabase;

TEST_P(ExtentScatter, LeadsToTheRecordsThatTheTreeHas) {
  auto database = open(Engine::mmap);
  const std::uint64_t entries = database.entries();
  if (entries == 0) GTEST_SKIP() << "no records";
  std::mt19937_64 random(GetParam());
  lmdb::Cursor cursor;
  for (int round = 0; round < test::long_cases(5); ++round) {
    std::vector<SampleRange> runs;
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t first = random() % entries;
      runs.push_back({first, 1 + random() % (entries - first)});
    }
    const auto pieces = walk_pieces(database, cursor, runs);
    const auto located = decode(encode(42, pieces), LocateLimits::of(database));
    EXPECT_EQ(located.window, 42U);
    ASSERT_EQ(located.pieces, pieces);
    ASSERT_EQ(pieces.size(), runs.size());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const auto begin = expected_.begin() + static_cast<std::ptrdiff_t>(runs[i].first);
      EXPECT_EQ(records_of(database, pieces[i]),
                std::vector(begin, begin + static_cast<std::ptrdiff_t>(runs[i].count)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, ExtentScatter, lmdb::every_standard_database(), lmdb::name_of_case);

std::vector<LocatedPiece> some_pieces() {
  return {{.first_sample = 5,
           .count = 6,
           .leaves = {{.page = 7, .records = 4, .first_sample = 3, .runs = {{9, 2, 1}, {50, 1, 3}}},
                      {.page = 8, .records = 1, .first_sample = 7, .runs = {}},
                      {.page = 3, .records = 9, .first_sample = 8, .runs = {{90, 10, 8}}}}},
          {.first_sample = 0,
           .count = 1,
           .leaves = {{.page = 99, .records = 2, .first_sample = 0, .runs = {}}}}};
}

constexpr LocateLimits kLimits{.entries = 20, .last_page = 99, .page_size = 4096};

TEST(ExtentMessage, IsCompact) {
  EXPECT_EQ(decode(encode(3, some_pieces()), kLimits).pieces, some_pieces());
  EXPECT_LT(encode(3, some_pieces()).size(), 50U);
}

TEST(ExtentMessage, CutMessagesAreRefused) {
  const auto whole = encode(3, some_pieces());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(decode(std::span(whole).first(size), kLimits), Error) << size;
  }
  auto longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_THROW(decode(longer, kLimits), Error);
}

TEST(ExtentMessage, NumbersOutsideTheSnapshotAreRefused) {
  const auto bytes = encode(3, some_pieces());
  EXPECT_THROW(decode(bytes, {.entries = 16, .last_page = 99, .page_size = 4096}), Error);
  EXPECT_THROW(decode(bytes, {.entries = 20, .last_page = 98, .page_size = 4096}), Error);
}

TEST(ExtentMessage, HugeCountsAskForNoMemory) {
  for (const std::uint64_t huge : {std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    std::vector<std::byte> bytes = encode(0, {});
    bytes.pop_back();  // the number of pieces
    for (std::uint64_t rest = huge; rest >= 0x80; rest >>= 7) {
      bytes.push_back(static_cast<std::byte>(rest | 0x80));
    }
    bytes.push_back(std::byte{1});
    EXPECT_THROW(decode(bytes, kLimits), Error);
  }
}

/// Whatever the bytes are, what comes out is inside the snapshot.
TEST(ExtentMessage, MutatedMessagesAreRefusedOrHarmless) {
  std::mt19937_64 random(9);
  const auto whole = encode(3, some_pieces());
  int accepted = 0;
  for (int round = 0; round < test::random_cases(20000); ++round) {
    auto bytes = whole;
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    try {
      for (const LocatedPiece& piece : decode(bytes, kLimits).pieces) {
        ++accepted;
        ASSERT_LE(piece.first_sample + piece.count, kLimits.entries);
        std::uint64_t next = piece.leaves.front().first_sample;
        for (const LocatedLeaf& leaf : piece.leaves) {
          ASSERT_EQ(leaf.first_sample, next);
          next += leaf.records;
          ASSERT_LE(next, kLimits.entries);
          ASSERT_LE(leaf.page, kLimits.last_page);
          for (const lmdb::LeafRun& run : leaf.runs) {
            ASSERT_LT(run.slot, leaf.records);
            ASSERT_LE(run.page + run.pages, kLimits.last_page + 1);
          }
        }
        ASSERT_GE(next, piece.first_sample + piece.count);
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::communication);
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(SampleRanges, HoldEachSampleOnceWhereTheDataSetRecurs) {
  const std::vector<Piece> pieces{{8, 4, 0}, {12, 10, 4}};
  EXPECT_EQ(sample_ranges(StridedOrder(10, 1, 1), pieces), (std::vector<SampleRange>{{0, 10}}));
  EXPECT_EQ(sample_ranges(StridedOrder(15, 1, 1), pieces),
            (std::vector<SampleRange>{{0, 7}, {8, 7}}));
  EXPECT_EQ(sample_ranges(StridedOrder(100, 1, 1), pieces), (std::vector<SampleRange>{{8, 14}}));
  const std::vector<Piece> apart{{8, 4, 0}, {15, 4, 4}};
  EXPECT_EQ(sample_ranges(StridedOrder(10, 1, 1), apart),
            (std::vector<SampleRange>{{0, 2}, {5, 5}}));
}

TEST(ExtentLink, CarriesAWindowToItsRoot) {
  run_ranks(3, 0, [](const auto& comm) {
    ExtentLink link(comm, std::chrono::milliseconds(2000));
    const auto pieces = some_pieces();
    if (comm->rank() == 0) {
      for (int root = 1; root < comm->size(); ++root) {
        link.send(root, 0, pieces);
        link.send(root, 1, {});
        link.send(root, 5, pieces);
      }
    } else {
      EXPECT_EQ(link.receive(0, 0, kLimits, {}), pieces);
      EXPECT_TRUE(link.receive(0, 1, kLimits, {})->empty()) << "nothing to read";
      EXPECT_THROW(link.receive(0, 2, kLimits, {}), Error) << "another window";
      EXPECT_FALSE(link.receive(0, 3, kLimits, [] { return true; }).has_value());
    }
    comm->barrier();
  });
}

}  // namespace
}  // namespace forebay
