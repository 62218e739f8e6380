// The central contract (DESIGN 3) for data sets with a convention: whatever the order, engine,
// strategy, roots and node layout, each rank gets the samples that the order says, with the parts
// that liblmdb was given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forebay/error.hpp"
#include "forebay/packed_parts.hpp"
#include "tests/conventions/convention_data.hpp"
#include "tests/loader/random_loading.hpp"
#include "tests/support/scale.hpp"

namespace forebay::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Conventions, NoStrategyChangesWhatAnOrderDelivers) {
  TemporaryFolder folder;
  const std::vector<ConventionCase> cases = every_convention(folder);
  RandomChoice choice(17);
  const auto rounds = static_cast<std::size_t>(long_cases(56));
  for (std::size_t round = 0; round < rounds; ++round) {
    const ConventionCase& from = cases[round % cases.size()];
    LoaderOptions options = from.options;
    options.stage_bytes = std::uint64_t{48} << 20;
    load_at_random(choice, from.name, from.data, options);
  }
}

TEST(Conventions, SamplesInTheMemoryOfAllRanksAreTheSame) {
  TemporaryFolder folder;
  for (const ConventionCase& from : every_convention(folder)) {
    if (from.data.entries() < 10) continue;
    LoaderOptions options = from.options;
    options.order = OrderName::shuffled;
    options.hold = Hold::memory;
    options.batch = 9;
    options.epochs = 2;
    options.stage_bytes = std::uint64_t{64} << 20;
    SCOPED_TRACE(from.name);
    run_ranks(3, 0, [&](const auto& comm) {
      Loader loader = Loader::open(comm, from.data.path(), options);
      expect_drawn(from.data, loader, options, 3, comm->rank());
    });
  }
}

TEST(Conventions, WhoWalksIsRefusedWithAWayOut) {
  TemporaryFolder folder;
  const std::vector<ConventionCase> cases = every_convention(folder);
  for (const Strategy strategy : {Strategy::lmdb, Strategy::lmm, Strategy::lmm_dm}) {
    LoaderOptions options(OrderOptions{.batch = 4}, RunOptions{.epochs = 1});
    options.strategy = strategy;
    try {
      Loader::open(self_communicator(), cases[0].data.path(), options);
      FAIL() << "it opens";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_THAT(error.what(), AllOf(HasSubstr(std::string(to_string(strategy))),
                                      HasSubstr("--convention plain")));
    }
    options.convention = ConventionName::plain;
    EXPECT_EQ(Loader::open(self_communicator(), cases[0].data.path(), options).entries(), 261U);
  }
}

TEST(Conventions, ContradictionsReachAllRanks) {
  TemporaryFolder folder;
  write_records(folder.file("d"), grouped_records(10));
  write_records(folder.file("d"), {{"num-samples", "11"}});
  std::vector<std::string> messages(3);
  run_ranks(3, 0, [&](const auto& comm) {
    try {
      Loader::open(comm, folder.file("d"),
                   LoaderOptions(OrderOptions{.batch = 4}, RunOptions{.epochs = 1}));
    } catch (const Error& error) {
      messages[static_cast<std::size_t>(comm->rank())] = error.what();
    }
  });
  EXPECT_THAT(messages, testing::Each(AllOf(HasSubstr("11"), HasSubstr("10"))));
}

TEST(Conventions, PartnersThatOnlyReadingFindsMissingAreNamed) {
  TemporaryFolder folder;
  // Counts and ends agree.
  write_records(folder.file("a"), {{"1", ""}, {"2", ""}, {"4", ""}, {"5", ""}});
  write_records(folder.file("b"), {{"1", ""}, {"3", ""}, {"4", ""}, {"5", ""}});
  const std::string path = "x=" + folder.file("a") + "&y=" + folder.file("b");
  try {
    Loader loader = Loader::open(self_communicator(), path,
                                 LoaderOptions(OrderOptions{.batch = 4}, RunOptions{.epochs = 1}));
    loader.next();
    FAIL() << "it is delivered";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("partner 2"), HasSubstr("'y'")));
  }
}

TEST(Conventions, PartsDecodeByThemselvesAndTextHasNoField) {
  TemporaryFolder folder;
  std::vector<OracleRecord> records;
  for (std::uint64_t i = 0; i < 20; ++i) {
    records.push_back({numbered("image-", i), test_value(1, i, 12)});
    records.push_back({numbered("label-", i), std::string(i, 'w')});
  }
  write_records(folder.file("d"), records);
  LoaderOptions options(OrderOptions{.batch = 5}, RunOptions{.epochs = 1});
  Loader loader = Loader::open(self_communicator(), folder.file("d"), options);
  EXPECT_THAT(std::vector(loader.parts().begin(), loader.parts().end()),
              ElementsAre("image", "label"));
  EXPECT_TRUE(loader.schema().fields.empty());
  const auto batch = loader.next();
  const auto parts = split_parts(batch->samples()[4].value, 2);
  EXPECT_EQ(text(parts[0]), test_value(1, 4, 12));
  EXPECT_EQ(text(parts[1]), "wwww");
}

TEST(Conventions, ARunGoesOnWhereItHasStoppedAndKnowsAnotherConvention) {
  TemporaryFolder folder;
  const std::vector<ConventionCase> cases = every_convention(folder);
  for (const OrderName order : {OrderName::strided, OrderName::shuffled}) {
    LoaderOptions options(OrderOptions{.batch = 7}, RunOptions{.epochs = 2});
    options.order = order;
    const std::string& path = cases[0].data.path();
    LoaderOptions resumed = resume_options(expect_resumed(path, options), options, 1);
    resumed.convention = ConventionName::plain;
    EXPECT_THROW(Loader::open(self_communicator(), path, resumed), Error);
  }
}

TEST(Conventions, DatabasesAreTheGroupsWhereNoSizeIsGiven) {
  TemporaryFolder folder;
  const std::vector<ConventionCase> cases = every_convention(folder);
  const auto joined = std::ranges::find(cases, "one behind the other", &ConventionCase::name);
  LoaderOptions options = joined->options;
  options.batch = 6;
  options.epochs = 1;
  options.order = OrderName::grouped;
  OrderOptions order = joined->data.order(options, 2);
  order.bounds = std::make_shared<const std::vector<std::uint64_t>>(
      std::vector<std::uint64_t>{0, 20, 71, 153});
  run_ranks(2, 0, [&](const auto& comm) {
    Loader loader = Loader::open(comm, joined->data.path(), options);
    expect_drawn(joined->data, loader, order, options.epochs, comm->rank());
  });
}

TEST(Conventions, ExplainSaysWhatWasRecognised) {
  TemporaryFolder folder;
  const std::vector<ConventionCase> cases = every_convention(folder);
  LoaderOptions options(OrderOptions{.batch = 4}, RunOptions{.epochs = 1});
  options.explain = true;
  const Loader loader = Loader::open(self_communicator(), cases[0].data.path(), options);
  EXPECT_THAT(loader.explain(), HasSubstr("grouped (image, label)"));
  EXPECT_THAT(loader.plan(true), HasSubstr("\"reads\""));
}

}  // namespace
}  // namespace forebay::test
