// One training after the other, on threads and with a network that needs no LibTorch.
#include "train/ladder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "forebay/communicator.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/train/trainer/quadrants.hpp"

namespace forebay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Ladder : public testing::Test {
 protected:
  LadderOptions options(const std::vector<std::string>& strategies) const {
    LadderOptions options;
    options.train.dataset = training_;
    options.train.classes = 256;
    options.train.loader.batch = 8;
    options.train.loader.iterations = 5;
    options.train.loader.codec = "raw";
    options.train.loader.schema = "image:u8[1x4x4],label:u8[]";
    options.train.loader.stage_bytes = 1 << 20;
    options.variants = bench::parse_variants(strategies, options.train.loader);
    options.repetitions = 2;
    return options;
  }

  static LadderResults run(const LadderOptions& options) {
    LadderResults results;
    run_ranks(4, 2, [&](const std::shared_ptr<Communicator>& comm) {
      LadderResults mine = run_ladder(comm, options, Quadrants::make);
      if (comm->rank() == 0) results = std::move(mine);
    });
    return results;
  }

  test::TemporaryFolder dir_;
  // 4x4 pixels and one byte of label.
  std::string training_ = test::LmdbBuilder().in_order(60).values(17).build(dir_.file("train"));
};

TEST_F(Ladder, EveryVariantTrainsOnceARepetitionAndToTheSameLoss) {
  const LadderResults results = run(options({"lmdb", "lmm", "lmm+buffers=1"}));
  EXPECT_EQ(results.ranks, 4);
  EXPECT_EQ(results.nodes, 2);
  std::map<int, std::multiset<std::string>> variants;
  std::set<double> losses;
  for (const LadderRun& run : results.runs) {
    variants[run.repetition].insert(run.variant);
    losses.insert(run.report.loss);
  }
  EXPECT_THAT(variants[0], ElementsAre("lmdb", "lmm", "lmm+buffers=1"));
  EXPECT_EQ(variants[0], variants[1]);
  EXPECT_EQ(losses.size(), 1U);
}

TEST_F(Ladder, TellsWhatEachVariantSpent) {
  const LadderResults results = run(options({"lmdb", "lmm"}));
  const auto json = to_json(results);
  EXPECT_EQ(json["bench"], "train");
  EXPECT_EQ(json["runs"].size(), 4U);
  ASSERT_EQ(json["summary"].size(), 2U);
  for (const auto& row : json["summary"]) {
    for (const char* name : {"images_per_second", "read_seconds", "skew_seconds", "compute_seconds",
                             "sync_seconds", "other_seconds"}) {
      ASSERT_TRUE(row.contains(name)) << name;
      EXPECT_LE(row[name]["least"], row[name]["median"]) << name;
      EXPECT_LE(row[name]["median"], row[name]["most"]) << name;
    }
  }
  EXPECT_THAT(to_text(results), HasSubstr("lmdb"));
}

}  // namespace
}  // namespace forebay
