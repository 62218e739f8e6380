// The central contract (DESIGN 3) for data sets with a convention: whatever the order, engine,
// strategy, roots and node layout, each rank gets the samples that the order says, with the parts
// that liblmdb was given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "forebay/error.hpp"
#include "forebay/packed_parts.hpp"
#include "tests/conventions/convention_data.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using test::ConventionCase;
using test::DrawData;
using test::TemporaryFolder;
using test::write_records;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr OrderName kOrders[] = {OrderName::strided, OrderName::grouped, OrderName::shuffled,
                                 OrderName::listed, OrderName::in_memory};
constexpr ReadEngine kEngines[] = {ReadEngine::automatic, ReadEngine::mmap, ReadEngine::pread,
                                   ReadEngine::uring};
constexpr Strategy kStrategies[] = {Strategy::automatic, Strategy::lmm_dio, Strategy::lmm_dio_prov,
                                    Strategy::lmm_dio_prov_coal, Strategy::lmm_dio_prov_coal_stag};

class RandomChoice {
 public:
  explicit RandomChoice(std::uint64_t seed) : random_(seed) {}
  std::uint64_t number(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random_);
  }
  template <typename List>
  auto of(const List& list) {
    return std::begin(list)[number(0, std::size(list) - 1)];
  }

 private:
  std::mt19937_64 random_;
};

LoaderOptions random_options(RandomChoice& choice, const ConventionCase& from, OrderName order,
                             int& ranks) {
  const std::uint64_t entries = from.data.entries();
  LoaderOptions options = from.options;
  options.order = order;
  if (order == OrderName::in_memory) ranks = 1;
  if (order == OrderName::grouped) {
    ranks = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(ranks), entries));
    options.group = choice.number(1, entries / static_cast<std::uint64_t>(ranks));
  }
  if (order == OrderName::listed) {
    std::vector<std::uint64_t> ids(choice.number(1, 2 * entries));
    for (auto& id : ids) id = choice.number(0, entries - 1);
    options.ids = std::make_shared<const std::vector<std::uint64_t>>(std::move(ids));
  }
  options.batch = choice.number(static_cast<std::uint64_t>(ranks), 40);
  options.seed = choice.number(0, 1000);
  options.epochs = choice.number(1, 3);
  options.window = choice.number(1, 6);
  options.strategy = choice.of(kStrategies);
  options.engine = choice.of(kEngines);
  options.buffers = static_cast<int>(choice.number(1, 3));
  options.gap_bytes = choice.number(0, 1) * 4096;
  options.stage_bytes = std::uint64_t{48} << 20;
  if (order == OrderName::strided) {
    options.coalesce = choice.number(0, 5);
    options.roots = static_cast<int>(choice.number(0, 3));
    options.stagger = static_cast<int>(choice.number(0, 2));
  }
  return options;
}

void expect_strided(const DrawData& data, Loader& loader, int rank) {
  std::uint64_t iteration = 0;
  for (; const auto batch = loader.next(); ++iteration) {
    const Run run = loader.order().run(rank, iteration);
    ASSERT_EQ(batch->samples().size(), run.count);
    for (std::uint64_t k = 0; k < run.count; ++k) {
      const Sample& sample = batch->samples()[k];
      ASSERT_EQ(sample.id, loader.order().sample(run.first + k));
      ASSERT_EQ(test::text(sample.key), data.record(sample.id).key);
      ASSERT_EQ(test::text(sample.value), data.record(sample.id).value) << "sample " << sample.id;
    }
  }
  EXPECT_GT(iteration, 0U);
}

void expect_drawn(const DrawData& data, Loader& loader, const LoaderOptions& options, int ranks,
                  int rank) {
  for (std::uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const EpochOrder order(data.order(options, ranks), epoch);
    for (std::uint64_t step = 0; step < order.steps(); ++step) {
      const auto batch = loader.next();
      ASSERT_TRUE(batch);
      data.expect_batch(order, rank, step, *batch);
    }
  }
  EXPECT_FALSE(loader.next());
}

TEST(Conventions, NoStrategyChangesWhatAnOrderDelivers) {
  TemporaryFolder folder;
  const std::vector<ConventionCase> cases = every_convention(folder);
  RandomChoice choice(17);
  const auto rounds = static_cast<std::size_t>(test::long_cases(56));
  for (std::size_t round = 0; round < rounds; ++round) {
    const ConventionCase& from = cases[round % cases.size()];
    int ranks = static_cast<int>(choice.number(1, 5));
    const OrderName order = choice.of(kOrders);
    const LoaderOptions options = random_options(choice, from, order, ranks);
    const int per_node = static_cast<int>(choice.number(0, 4));
    SCOPED_TRACE(from.name + " ranks=" + std::to_string(ranks) +
                 " per node=" + std::to_string(per_node) + " " + options.to_text());
    run_ranks(ranks, per_node, [&](const auto& comm) {
      Loader loader = Loader::open(comm, from.data.path(), options);
      ASSERT_EQ(loader.entries(), from.data.entries());
      if (order == OrderName::strided) return expect_strided(from.data, loader, comm->rank());
      expect_drawn(from.data, loader, options, ranks, comm->rank());
    });
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
    LoaderOptions options{.batch = 4, .epochs = 1};
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
  write_records(folder.file("d"), test::grouped_records(10));
  write_records(folder.file("d"), {{"num-samples", "11"}});
  std::vector<std::string> messages(3);
  run_ranks(3, 0, [&](const auto& comm) {
    try {
      Loader::open(comm, folder.file("d"), {.batch = 4, .epochs = 1});
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
    Loader loader = Loader::open(self_communicator(), path, {.batch = 4, .epochs = 1});
    loader.next();
    FAIL() << "it is delivered";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("partner 2"), HasSubstr("'y'")));
  }
}

TEST(Conventions, PartsDecodeByThemselvesAndTextHasNoField) {
  TemporaryFolder folder;
  std::vector<test::OracleRecord> records;
  for (std::uint64_t i = 0; i < 20; ++i) {
    records.push_back({test::numbered("image-", i), test::test_value(1, i, 12)});
    records.push_back({test::numbered("label-", i), std::string(i, 'w')});
  }
  write_records(folder.file("d"), records);
  LoaderOptions options{.batch = 5, .epochs = 1};
  Loader loader = Loader::open(self_communicator(), folder.file("d"), options);
  EXPECT_THAT(std::vector(loader.parts().begin(), loader.parts().end()),
              ElementsAre("image", "label"));
  EXPECT_TRUE(loader.schema().fields.empty());
  const auto batch = loader.next();
  const auto parts = split_parts(batch->samples()[4].value, 2);
  EXPECT_EQ(test::text(parts[0]), test::test_value(1, 4, 12));
  EXPECT_EQ(test::text(parts[1]), "wwww");
}

TEST(Conventions, ARunGoesOnWhereItHasStoppedAndKnowsAnotherConvention) {
  TemporaryFolder folder;
  const std::vector<ConventionCase> cases = every_convention(folder);
  for (const OrderName order : {OrderName::strided, OrderName::shuffled}) {
    LoaderOptions options{.batch = 7, .epochs = 2};
    options.order = order;
    const std::string& path = cases[0].data.path();
    std::vector<std::uint64_t> whole, parts;
    const auto take = [](Loader& loader, std::vector<std::uint64_t>& ids, int most) {
      for (int i = 0; i < most; ++i) {
        const auto batch = loader.next();
        if (!batch) return;
        for (const Sample& sample : batch->samples()) ids.push_back(sample.id);
      }
    };
    Loader all = Loader::open(self_communicator(), path, options);
    take(all, whole, 1000);
    std::string state;
    {
      Loader first = Loader::open(self_communicator(), path, options);
      take(first, parts, 13);
      state = first.state();
    }
    LoaderOptions resumed = resume_options(state, options, 1);
    Loader second = Loader::open(self_communicator(), path, resumed);
    take(second, parts, 1000);
    EXPECT_EQ(parts, whole) << to_string(order);
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
    const EpochOrder expected(order, 0);
    for (std::uint64_t step = 0; step < expected.steps(); ++step) {
      joined->data.expect_batch(expected, comm->rank(), step, *loader.next());
    }
  });
}

TEST(Conventions, ExplainSaysWhatWasRecognised) {
  TemporaryFolder folder;
  const std::vector<ConventionCase> cases = every_convention(folder);
  LoaderOptions options{.batch = 4, .epochs = 1};
  options.explain = true;
  const Loader loader = Loader::open(self_communicator(), cases[0].data.path(), options);
  EXPECT_THAT(loader.explain(), HasSubstr("grouped (image, label)"));
  EXPECT_THAT(loader.plan(true), HasSubstr("\"reads\""));
}

}  // namespace
}  // namespace forebay
