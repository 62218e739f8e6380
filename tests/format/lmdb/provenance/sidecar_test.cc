// Sidecars of every database deliver its records; those that lie, are damaged or old deliver none.
#include "format/lmdb/provenance/sidecar.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/lmdb/provenance/make_sidecar.hpp"
#include "format/lmdb/provenance/recipe_leaves.hpp"
#include "tests/format/lmdb/file_surgery.hpp"
#include "tests/format/lmdb/index_support.hpp"
#include "tests/support/scale.hpp"

namespace forebay::lmdb {
namespace {

using test::LmdbBuilder;
using testing::HasSubstr;

class EveryDatabaseWithSidecar : public EveryDatabase {
 protected:
  void expect_delivers(Database& database, const MadeSidecar& made) {
    auto loaded = load_sidecar(made.bytes, facts_of(database));
    ASSERT_TRUE(loaded) << loaded.problem;
    EXPECT_EQ(loaded.leaves->form(), to_string(made.form));
    EXPECT_EQ(first_difference(*loaded.leaves, database), "");
    OwnIndex index(database, std::move(loaded.leaves));
    expect_equal(*index, database.snapshot().file(), expected_, test::random_cases(20));
  }
};

TEST_P(EveryDatabaseWithSidecar, TheBestFormDelivers) {
  Database database = open(Engine::mmap);
  const MadeSidecar made = make_sidecar(database, WantedForm::automatic);
  EXPECT_EQ(made.form == SidecarForm::recipe, made.why_no_recipe.empty());
  expect_delivers(database, made);
}

TEST_P(EveryDatabaseWithSidecar, ATableDelivers) {
  Database database = open(Engine::pread);
  expect_delivers(database, make_sidecar(database, WantedForm::table));
}

INSTANTIATE_TEST_SUITE_P(Standard, EveryDatabaseWithSidecar, every_standard_database(),
                         name_of_case);

/// A database in memory with its sidecar.
class Sidecar {
 public:
  Sidecar(const LmdbBuilder& builder, WantedForm form)
      : bytes_(builder),
        file_(bytes_.open()),
        database_(Database::open(file_)),
        made_(make_sidecar(database_, form)),
        expected_(read_all(database_)) {}

  Database& database() { return database_; }
  const File& file() const { return *file_; }
  const MadeSidecar& made() const { return made_; }
  SidecarResult load(std::span<const std::byte> bytes) {
    return load_sidecar(bytes, facts_of(database_));
  }

  /// Whether reading some ranges by `bytes` ends in a refusal. Fails when it ends in wrong records.
  bool refused(std::span<const std::byte> bytes, std::uint64_t seed) {
    auto loaded = load(bytes);
    if (!loaded) return true;
    try {
      OwnIndex index(database_, std::move(loaded.leaves));
      std::mt19937_64 random(seed);
      for (int i = 0; i < 20; ++i) {
        const std::uint64_t first = random() % expected_.size();
        const std::uint64_t count = std::min(expected_.size() - first, 1 + random() % 30);
        const auto records = read_range(*index, *file_, first, count);
        EXPECT_TRUE(std::equal(records.begin(), records.end(),
                               expected_.begin() + static_cast<std::ptrdiff_t>(first)))
            << "wrong records of " << first << " + " << count;
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt) << error.what();
      return true;
    }
    return false;
  }

 private:
  FileSurgery bytes_;
  std::shared_ptr<const File> file_;
  Database database_;
  MadeSidecar made_;
  std::vector<OracleRecord> expected_;
};

/// A table and a recipe.
class BothForms : public testing::TestWithParam<WantedForm> {
 protected:
  static LmdbBuilder builder() {
    return GetParam() == WantedForm::recipe
               ? LmdbBuilder().in_order(20'000).values(40).commit_every(700)
               : LmdbBuilder().random_order(900).values(0, 4000).commit_every(90).update_every(5);
  }
  Sidecar sidecar_{builder(), GetParam()};
};

TEST_P(BothForms, CutAnywhereIsNotUsed) {
  const auto& bytes = sidecar_.made().bytes;
  const std::size_t step = std::max<std::size_t>(1, bytes.size() / 300);
  for (std::size_t size = 0; size < bytes.size(); size += step) {
    const auto loaded = sidecar_.load(std::span(bytes).first(size));
    EXPECT_FALSE(loaded);
    EXPECT_FALSE(loaded.problem.empty());
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(sidecar_.load(longer));
}

TEST_P(BothForms, EachChangedByteIsNoticed) {
  const auto& bytes = sidecar_.made().bytes;
  const std::size_t step = std::max<std::size_t>(1, bytes.size() / 300);
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    auto changed = bytes;
    changed[at] ^= std::byte{0x10};
    EXPECT_FALSE(sidecar_.load(changed)) << "byte " << at;
  }
}

TEST_P(BothForms, CutAnywhereAndSealedAgainIsRefused) {
  const auto& bytes = sidecar_.made().bytes;
  const std::size_t step = std::max<std::size_t>(1, bytes.size() / 100);
  for (std::size_t size = 0; size < bytes.size(); size += step) {
    std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    seal_again(cut);
    EXPECT_TRUE(sidecar_.refused(cut, size));
  }
}

TEST_P(BothForms, ChangedAndSealedAgainDeliversNoWrongRecord) {
  std::mt19937_64 random(9);
  int refused = 0;
  const int rounds = test::random_cases(150);
  for (int round = 0; round < rounds; ++round) {
    auto bytes = sidecar_.made().bytes;
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      bytes[24 + random() % (bytes.size() - 24)] = static_cast<std::byte>(random());
    }
    seal_again(bytes);
    refused += sidecar_.refused(bytes, random()) ? 1 : 0;
  }
  EXPECT_GT(refused, rounds / 10);
}

TEST_P(BothForms, AnotherStateOfTheDataSetIsNotItsOwn) {
  TreeFacts facts = facts_of(sidecar_.database());
  facts.fingerprint += ",other";
  const auto loaded = load_sidecar(sidecar_.made().bytes, facts);
  EXPECT_FALSE(loaded);
  EXPECT_THAT(loaded.problem, HasSubstr("another state"));
}

TEST_P(BothForms, AnotherVersionAndOtherFilesAreNamed) {
  auto bytes = sidecar_.made().bytes;
  bytes[8] = std::byte{9};
  EXPECT_THAT(sidecar_.load(bytes).problem, HasSubstr("version 9"));
  EXPECT_THAT(sidecar_.load(test::counting_bytes(200)).problem, HasSubstr("no sidecar"));
}

TEST_P(BothForms, OpensInATimeThatDoesNotGrowWithExpanding) {
  const auto loaded = sidecar_.load(sidecar_.made().bytes);
  ASSERT_TRUE(loaded);
  // Nothing but the sidecar's own bytes and the directory.
  EXPECT_LT(loaded.leaves->memory_bytes(), 2 * sidecar_.made().bytes.size() + 4096);
}

INSTANTIATE_TEST_SUITE_P(Sidecars, BothForms,
                         testing::Values(WantedForm::table, WantedForm::recipe));

// Consistent lies: the checksum is right and each leaf looks like the one it is taken for.

TEST(LyingTable, OlderCopiesOfALeafAreNotTaken) {
  // Updates leave copies of leaves behind that differ in a value only.
  FileSurgery bytes(LmdbBuilder().in_order(200).values(500).commit_every(10).update_every(3));
  Database database = Database::open(bytes.open());
  const auto flags = database.tree().header().flags;
  auto leaves = leaves_of(database);
  const LeafTable sound = table_of(leaves, flags);
  const auto expected = read_all(database);
  int copies = 0;
  std::uint64_t sample = 0;
  for (std::size_t i = 0; i < leaves.size(); sample += leaves[i++].records) {
    for (std::uint64_t page = 2; page < bytes.pages(); ++page) {
      if (page == leaves[i].page || bytes.get<std::uint64_t>(bytes.at(page)) != page ||
          bytes.get<std::uint16_t>(bytes.at(page) + 10) != kPageLeaf ||
          bytes.count(page) != leaves[i].records) {
        continue;
      }
      auto lie = leaves;
      lie[i].page = page;
      LeafTable table = table_of(lie, flags);
      table.set_keys(sound.keys());
      OwnIndex index(database, std::make_unique<TableLeaves>(table));
      EXPECT_THROW(read_range(*index, *bytes.open(), sample, 1), IndexMismatch);
      ++copies;
    }
  }
  EXPECT_GT(copies, 0);
}

TEST(LyingRecipe, AShiftedLayoutOfSmallRecordsIsNotTaken) {
  Sidecar sidecar(LmdbBuilder().in_order(5000).values(40).commit_every(1000), WantedForm::recipe);
  Recipe recipe = *sidecar.made().recipe;
  recipe.commit_every = 990;
  ByteWriter body;
  RecipeLeaves(recipe, sidecar.made().survey.table.keys()).write(body);
  const auto lie =
      seal_sidecar(SidecarForm::recipe, facts_of(sidecar.database()).fingerprint, body.bytes());
  EXPECT_TRUE(sidecar.refused(lie, 1));
}

// Sizes.

std::string decimal_key(std::uint64_t sample) {
  const std::string digits = std::to_string(sample);
  return std::string(10 - digits.size(), '0') + digits;
}

TEST(SizeOfTable, DoesNotGrowWhereRunsRepeat) {
  std::vector<std::size_t> sizes;
  for (const std::uint64_t records : {100'000, 10'000'000}) {
    LeafTableBuilder builder(0);
    std::uint64_t sample = 0, page = 2;
    while (sample < records) {
      std::vector<LeafRun> runs;
      const PageNumber leaf = page++;
      for (std::uint16_t slot = 0; slot < 100; ++slot, page += 2) runs.push_back({page, 2, slot});
      const std::string first = decimal_key(sample), last = decimal_key(sample + 99);
      builder.add(SeenLeaf{.layout = {.page = leaf, .records = 100, .runs = runs},
                           .first_key = to_bytes(first),
                           .last_key = to_bytes(last)});
      sample += 100;
    }
    LeafTable table = builder.finish();
    table.shorten();
    ByteWriter out;
    table.write(out);
    sizes.push_back(out.size());
  }
  EXPECT_LT(sizes[1], 1000U);
  EXPECT_LT(sizes[1], sizes[0] + 100);
}

TEST(SizeOfTable, IsLessThanAByteARecordWhereLengthsSpread) {
  Sidecar sidecar(
      LmdbBuilder().in_order(2500).file_name_keys().values(0, 40'000).commit_every(1000),
      WantedForm::automatic);
  EXPECT_EQ(sidecar.made().form, SidecarForm::table);
  EXPECT_LT(sidecar.made().bytes.size(), 2500U);
}

TEST(SizeOfRecipe, CheckpointsAreSmall) {
  Sidecar sidecar(LmdbBuilder().in_order(40'000).values(100).commit_every(1000),
                  WantedForm::recipe);
  auto loaded = sidecar.load(sidecar.made().bytes);
  ASSERT_TRUE(loaded);
  EXPECT_GE(loaded.leaves->directory().size(), 3U);
  EXPECT_LT(sidecar.made().bytes.size(), 40'000U / 8);
}

}  // namespace
}  // namespace forebay::lmdb
