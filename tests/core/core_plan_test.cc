#include "core/topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/placement.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A machine of one hardware thread a core, all of it available.
std::vector<CoreThreads> plain_cores(int count) {
  std::vector<CoreThreads> cores;
  for (int i = 0; i < count; ++i) cores.push_back({i});
  return cores;
}

std::vector<CoreThreads> cores_of(const std::string& synthetic) {
  const Topology topology(synthetic);
  return topology.cores(topology.available());
}

TEST(CorePlan, TextFormReadsBack) {
  for (const char* text :
       {"shared", "cores:0", "cores:1,4-6", "progress:0", "progress:0/io:1", "decode:2-5",
        "progress:0/compute:4-7,9/decode:1-2/io:3", "progress:0/compute:0/decode:0/io:0"}) {
    EXPECT_EQ(CorePlan::parse(text).to_text(), text);
  }
  EXPECT_EQ(CorePlan::parse("io:3,1,2,1/progress:0").to_text(), "progress:0/io:1-3");
}

TEST(CorePlan, RefusesOtherText) {
  for (const char* text : {"", "partition", "cores:", "io", "io:", "io:0/", "/io:0", "io:0/io:1",
                           "disk:0", "io:1-0", "io:x", "io:99999999", "IO:0"}) {
    try {
      CorePlan::parse(text);
      ADD_FAILURE() << "'" << text << "' was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_THAT(error.what(), HasSubstr("placement"));
    }
  }
}

TEST(CorePlan, CoresAloneAreThoseOfTheHelpers) {
  const CorePlan plan = CorePlan::parse("cores:2-3");
  EXPECT_THAT(plan.of(Component::io), ElementsAre(2, 3));
  EXPECT_THAT(plan.of(Component::decode), ElementsAre(2, 3));
  EXPECT_THAT(plan.of(Component::progress), ElementsAre(2, 3));
  EXPECT_THAT(plan.of(Component::compute), IsEmpty());
}

TEST(CorePlan, SaysWhoSharesWithWhom) {
  EXPECT_EQ(CorePlan().explain(), "progress, compute, decode, io anywhere");
  CorePlan plan = CorePlan::parse("progress:0/compute:2-3/decode:1/io:1");
  plan.set_reason("rank 0 of 1 on 4 cores");
  EXPECT_EQ(plan.explain(),
            "progress on 0; compute on 2-3; decode, io on 1 (rank 0 of 1 on 4 cores)");
}

TEST(CorePlan, TheProgressThreadIsTheFirstToHaveItsOwnCore) {
  EXPECT_EQ(divide(plain_cores(1), {}).to_text(), "progress:0/compute:0/decode:0/io:0");
  EXPECT_EQ(divide(plain_cores(2), {}).to_text(), "progress:0/compute:1/decode:1/io:1");
  EXPECT_EQ(divide(plain_cores(3), {}).to_text(), "progress:0/compute:1/decode:2/io:2");
  EXPECT_EQ(divide(plain_cores(4), {}).to_text(), "progress:0/compute:1/decode:2/io:3");
}

TEST(CorePlan, MoreCoresGoWhereThreadsWaitForThem) {
  EXPECT_EQ(divide(plain_cores(8), {}).to_text(), "progress:0/compute:1-3/decode:4-6/io:7");
  EXPECT_EQ(divide(plain_cores(8), {.compute = 1, .decode = 3}).to_text(),
            "progress:0/compute:1-3/decode:4-6/io:7");
  EXPECT_EQ(divide(plain_cores(7), {.compute = 1, .decode = 4, .io = 2}).to_text(),
            "progress:0/compute:1/decode:2-4/io:5-6");
}

TEST(CorePlan, WhoHasNoThreadsGetsNoCores) {
  const CorePlan plan = divide(plain_cores(4), {.decode = 0, .io = 0});
  EXPECT_EQ(plan.to_text(), "progress:0/compute:1-3");
  EXPECT_EQ(divide(plain_cores(4), {.progress = 0, .compute = 0, .decode = 0, .io = 0}),
            CorePlan());
  EXPECT_EQ(divide(plain_cores(3), {.compute = 0, .decode = 1, .io = 1}).to_text(),
            "progress:0/decode:1/io:2");
}

TEST(CorePlan, SiblingsStayTogether) {
  const std::vector<CoreThreads> cores = cores_of("package:1 core:2 pu:2");
  ASSERT_EQ(cores.size(), 2U);
  EXPECT_EQ(divide(cores, {}).to_text(), "progress:0-1/compute:2-3/decode:2-3/io:2-3");
  const std::vector<CoreThreads> halves =
      Topology("package:1 core:4 pu:2").cores({0, 2, 3, 5, 6});  // a mask that cuts cores
  EXPECT_THAT(halves,
              ElementsAre(ElementsAre(0), ElementsAre(2, 3), ElementsAre(5), ElementsAre(6)));
}

TEST(CorePlan, RanksOfANodeDivideItFirst) {
  const std::vector<CoreThreads> cores = cores_of("package:2 core:4 pu:2");
  EXPECT_EQ(divide(slice_of(cores, 0, 2), {}).to_text(),
            "progress:0-1/compute:2-3/decode:4-5/io:6-7");
  EXPECT_EQ(divide(slice_of(cores, 1, 2), {}).to_text(),
            "progress:8-9/compute:10-11/decode:12-13/io:14-15");
}

TEST(CorePlan, NoCoreIsOfTwoRanksAndNoneIsLeftOverWhereThereAreEnough) {
  for (int count = 1; count <= 24; ++count) {
    const std::vector<CoreThreads> cores = plain_cores(count);
    for (int ranks = 1; ranks <= count; ++ranks) {
      std::set<int> given;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto slice = slice_of(cores, rank, ranks);
        EXPECT_GE(static_cast<int>(slice.size()), count / ranks);
        for (const CoreThreads& core : slice) EXPECT_TRUE(given.insert(core.front()).second);
      }
      EXPECT_EQ(static_cast<int>(given.size()), count);
    }
  }
}

TEST(CorePlan, MoreRanksThanCoresShareThemEvenly) {
  for (int count = 1; count <= 8; ++count) {
    const std::vector<CoreThreads> cores = plain_cores(count);
    for (int ranks = count + 1; ranks <= 20; ++ranks) {
      std::vector<int> ranks_on(cores.size());
      for (int rank = 0; rank < ranks; ++rank) {
        const auto slice = slice_of(cores, rank, ranks);
        ASSERT_EQ(slice.size(), 1U);
        EXPECT_EQ(slice.front().front(), rank % count);
        ++ranks_on[static_cast<std::size_t>(slice.front().front())];
      }
      EXPECT_LE(std::ranges::max(ranks_on) - std::ranges::min(ranks_on), 1);
    }
  }
}

TEST(CorePlan, ARankThatSharesItsCoreHasAllComponentsThere) {
  const std::vector<CoreThreads> cores = cores_of("package:1 core:2 pu:2");
  EXPECT_EQ(divide(slice_of(cores, 0, 5), {}).to_text(),
            "progress:0-1/compute:0-1/decode:0-1/io:0-1");
  EXPECT_EQ(divide(slice_of(cores, 3, 5), {}).to_text(),
            "progress:2-3/compute:2-3/decode:2-3/io:2-3");
}

TEST(CorePlan, EveryCoreOfASliceIsUsedAndComponentsDoNotOverlapInPart) {
  for (int count = 1; count <= 40; ++count) {
    for (const unsigned decode : {0U, 1U, 3U, ComponentThreads::kAny}) {
      const CorePlan plan = divide(plain_cores(count), {.decode = decode});
      std::set<std::vector<int>> groups;
      std::set<int> used;
      for (const Component component :
           {Component::progress, Component::compute, Component::decode, Component::io}) {
        const auto cores = plan.of(component);
        if (cores.empty()) continue;
        groups.insert({cores.begin(), cores.end()});
        used.insert(cores.begin(), cores.end());
      }
      std::size_t sum = 0;
      for (const auto& group : groups) sum += group.size();
      EXPECT_EQ(sum, used.size());
      EXPECT_EQ(static_cast<int>(used.size()), count);
    }
  }
}

TEST(CorePlan, PlacesItsThread) {
  CorePlan plan;
  const int core = available_cores().back();
  plan.give(Component::compute, {core});
  std::vector<int> found;
  HelperThread thread("x", {}, [&](const std::stop_token&) {
    plan.place_this_thread(Component::compute);
    cpu_set_t set;
    ::sched_getaffinity(0, sizeof(set), &set);
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) found.push_back(i);
    }
  });
  thread.stop();
  EXPECT_THAT(found, ElementsAre(core));
  EXPECT_THROW(plan.give(Component::io, {-1}), Error);
}

}  // namespace
}  // namespace forebay
