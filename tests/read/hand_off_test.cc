// The way of a cursor from root to root: planned without ranks, walked with ranks as threads.
#include "read/walk/hand_off.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "comm/messages.hpp"
#include "comm/node_groups.hpp"
#include "forebay/error.hpp"
#include "format/lmdb/database.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

struct Layout {
  std::uint64_t entries = 1;
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::shared_ptr<const RootMap> map;
};

/// Ranks cut into nodes, each with some of them as roots.
Layout random_layout(std::mt19937_64& random, std::uint64_t least_entries,
                     std::uint64_t most_entries) {
  const auto pick = [&random](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  };
  const int ranks = static_cast<int>(pick(1, 9));
  Layout layout;
  layout.entries = pick(least_entries, most_entries);
  std::uint64_t start = pick(0, 60);
  std::vector<PartialWindow> partial;
  if (pick(0, 1) == 0) {  // goes on inside a window of other ranks
    const std::uint64_t coalesce = pick(2, 6);
    const PartialWindow window{.begin = start,
                               .ranks = static_cast<int>(pick(1, 5)),
                               .batch = pick(5, 20),
                               .coalesce = coalesce,
                               .iterations = pick(1, coalesce - 1)};
    start += window.iterations * window.batch;
    partial.push_back(window);
  }
  const StridedOrder order(layout.entries, ranks, pick(ranks, 40), pick(1, 5), {start, partial});
  std::vector<RankGroup> groups;
  for (int begin = 0; begin < ranks;) {
    const int count = static_cast<int>(pick(1, ranks - begin));
    RankGroup& group = groups.emplace_back();
    group.ranks.resize(static_cast<std::size_t>(count));
    std::iota(group.ranks.begin(), group.ranks.end(), begin);
    group.roots = choose_roots(std::vector(group.ranks.size(), -1),
                               static_cast<int>(pick(1, static_cast<std::uint64_t>(count))));
    begin += count;
  }
  layout.map = std::make_shared<const RootMap>(order, groups);
  layout.first = pick(0, 12);
  layout.end = layout.first + pick(1, 12);
  return layout;
}

HandOffPlan plan_of(const Layout& layout) { return {layout.map, layout.first, layout.end}; }

/// Everything that all roots read: position -> root.
std::map<std::uint64_t, int> readers(const Layout& layout, const HandOffPlan& plan) {
  std::map<std::uint64_t, int> readers;
  const std::uint64_t coalesce = layout.map->order().coalesce();
  for (std::uint64_t window = plan.first_window(); window < plan.end_window(); ++window) {
    const std::uint64_t iterations = std::min(coalesce, layout.end - window * coalesce);
    for (int root = 0; root < layout.map->roots(); ++root) {
      for (const Piece& piece : layout.map->pieces(root, {window, Phase::whole, iterations})) {
        for (std::uint64_t k = 0; k < piece.count; ++k) readers[piece.position + k] = root;
      }
    }
  }
  return readers;
}

TEST(HandOff, EveryCursorThatIsSentIsReceivedAndLeadsOn) {
  std::mt19937_64 random(5);
  for (int round = 0; round < test::random_cases(300); ++round) {
    const Layout layout = random_layout(random, 1, 200);
    const HandOffPlan plan = plan_of(layout);
    std::map<std::uint64_t, int> covered;
    std::map<std::uint64_t, std::pair<int, Leg>> by_position;
    for (std::uint64_t window = plan.first_window(); window < plan.end_window(); ++window) {
      for (int root = 0; root < layout.map->roots(); ++root) {
        std::uint64_t last = 0;
        for (const Leg& leg : plan.legs(root, window)) {
          EXPECT_GE(leg.position, last) << "ascending";
          last = leg.position + leg.count;
          for (std::uint64_t k = 0; k < leg.count; ++k) covered[leg.position + k] = root;
          by_position[leg.position] = {root, leg};
        }
      }
    }
    EXPECT_EQ(covered, readers(layout, plan)) << "legs are what the roots read";
    const std::pair<int, Leg>* before = nullptr;
    for (const auto& [position, owned] : by_position) {
      const auto& [root, leg] = owned;
      if (before == nullptr) {
        EXPECT_EQ(leg.from, kNobody) << "the first one seeks";
      } else {
        const std::uint64_t end = before->second.position + before->second.count;
        const StridedOrder& order = layout.map->order();
        const bool useful = order.sample(end) != 0 && order.epoch(end) == order.epoch(position);
        EXPECT_EQ(leg.from, useful ? before->first : kNobody);
        EXPECT_EQ(before->second.to, useful ? root : kNobody);
      }
      before = &owned;
    }
    EXPECT_EQ(before->second.to, kNobody) << "nobody comes after the end";
  }
}

TEST(HandOff, PlainOrderGoesFromRootToRootAndRoundTheDataSet) {
  const StridedOrder order(16, 2, 8);
  const HandOffPlan plan(
      std::make_shared<const RootMap>(order, std::vector<RankGroup>{{{0}, {0}}, {{1}, {0}}}), 0, 3);
  EXPECT_EQ(plan.legs(0, 0), (std::vector<Leg>{{0, 4, kNobody, 1}}));
  EXPECT_EQ(plan.legs(1, 0), (std::vector<Leg>{{4, 4, 0, 0}}));
  EXPECT_EQ(plan.legs(0, 1), (std::vector<Leg>{{8, 4, 1, 1}}));
  EXPECT_EQ(plan.legs(1, 1), (std::vector<Leg>{{12, 4, 0, kNobody}})) << "sample 0 follows";
  EXPECT_EQ(plan.legs(0, 2), (std::vector<Leg>{{16, 4, kNobody, 1}}));
  EXPECT_EQ(plan.legs(1, 2), (std::vector<Leg>{{20, 4, 0, kNobody}})) << "the end";
}

TEST(HandOff, AGapThatHoldsSampleZeroNeedsNoCursor) {
  const std::vector<std::vector<Piece>> roots{{{8, 1, 0}}, {{12, 2, 0}}};
  const WindowEnds alone;
  const StridedOrder large(100, 1, 1);
  const StridedOrder small(10, 1, 1);
  EXPECT_EQ(legs_of(large, roots, 1, alone), (std::vector<Leg>{{12, 2, 0, kNobody}}));
  EXPECT_EQ(legs_of(small, roots, 1, alone), (std::vector<Leg>{{12, 2, kNobody, kNobody}}));
  EXPECT_EQ(legs_of(small, roots, 0, alone), (std::vector<Leg>{{8, 1, kNobody, kNobody}}));
}

/// One root: receives, walks, sends on; returns the keys under its positions.
std::map<std::uint64_t, std::string> walk(const StridedOrder& order, const HandOffPlan& plan,
                                          lmdb::Database& database, CursorLink& link, int me,
                                          std::uint64_t& seeks) {
  std::map<std::uint64_t, std::string> keys;
  lmdb::Tree& tree = database.tree();
  lmdb::Cursor cursor;
  for (std::uint64_t window = plan.first_window(); window < plan.end_window(); ++window) {
    for (const Leg& leg : plan.legs(me, window)) {
      if (leg.from != kNobody && leg.from != me) {
        const auto received = link.receive(leg.from, order.sample(leg.position), {});
        if (!received) return keys;
        cursor = *received;
      } else if (leg.from == kNobody) {
        ++seeks;
      }
      for (std::uint64_t position = leg.position; position < leg.position + leg.count; ++position) {
        tree.seek_record(cursor, order.sample(position));
        const auto key = tree.entry(cursor).key;
        keys[position] = {reinterpret_cast<const char*>(key.data()), key.size()};
      }
      const std::uint64_t end = leg.position + leg.count;
      if (leg.to == kNobody) continue;
      tree.seek_record(cursor, order.sample(end));
      if (leg.to != me) link.send(leg.to, cursor, order.sample(end));
    }
  }
  return keys;
}

TEST(HandOff, RootsReadTheRightRecordsFromCursorsOfOthers) {
  const test::TemporaryFolder folder;
  const std::string path =
      test::LmdbBuilder().random_order(150).values(0, 5000).build(folder.file("data"));
  const auto records = test::read_with_liblmdb(path);
  std::mt19937_64 random(7);
  for (int round = 0; round < test::random_cases(20); ++round) {
    const Layout layout = random_layout(random, 150, 150);
    const HandOffPlan plan = plan_of(layout);
    run_ranks(layout.map->roots(), 0, [&](const auto& comm) {
      auto database = lmdb::Database::open(path, Engine::mmap);
      CursorLink link(comm->split(0, comm->rank()), std::chrono::seconds(30));
      std::uint64_t seeks = 0;
      const StridedOrder& order = layout.map->order();
      for (const auto& [position, key] : walk(order, plan, database, link, comm->rank(), seeks)) {
        EXPECT_EQ(key, records[order.sample(position)].key);
      }
      comm->barrier();
    });
  }
}

TEST(CursorLink, RefusesWhatDoesNotLeadThere) {
  run_ranks(2, 0, [](const auto& comm) {
    CursorLink link(comm, std::chrono::milliseconds(50));
    lmdb::Cursor cursor;
    cursor.depth = 1;
    if (comm->rank() == 0) {
      link.send(1, cursor, 10);
      link.send(1, cursor, 10);
      cursor.depth = 1000;
      link.send(1, cursor, 10);
      comm->send(1, std::vector<std::byte>(7));
    }
    comm->barrier();  // all messages are there before anybody waits for them
    if (comm->rank() == 1) {
      EXPECT_EQ(link.receive(0, 12, {})->sample, 10U) << "before a gap";
      EXPECT_THROW(link.receive(0, 9, {}), Error) << "behind the sample";
      EXPECT_THROW(link.receive(0, 10, {}), Error) << "deeper than any tree";
      EXPECT_THROW(link.receive(0, 10, {}), Error) << "not a cursor at all";
      EXPECT_THROW(link.receive(0, 10, {}), Error) << "nothing comes";
      EXPECT_FALSE(link.receive(0, 10, [] { return true; }).has_value());
    }
    comm->barrier();
  });
}

}  // namespace
}  // namespace forebay
