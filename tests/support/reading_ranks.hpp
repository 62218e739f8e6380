// Ranks as threads that read and consume as a Loader's do, with files, indexes and turns of the
// test's own making:
//
//   Loader                            here
//   opens the data set                the test hands a source and a reader to start()
//   next() gives a batch in place     next() gives copies, and has released the batch already
//
// Everything in between is the real thing: reading thread, stage, turns, failure board.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "read/root_map.hpp"
#include "read/root_reader.hpp"
#include "tests/support/lmdb_builder.hpp"

namespace forebay::test {

/// Who reads what for whom.
struct ReadingPlan {
  std::uint64_t entries = 1;
  std::uint64_t batch = 1;
  std::uint64_t coalesce = 1;
  std::uint64_t iterations = 1;
  std::vector<RankGroup> groups = {{{0}, {0}}};
  int buffers = 2;
  std::uint64_t stage_bytes = std::uint64_t{64} << 20;

  int ranks() const {
    return std::accumulate(groups.begin(), groups.end(), 0, [](int sum, const RankGroup& group) {
      return sum + static_cast<int>(group.ranks.size());
    });
  }
};

/// Nodes with so many ranks each, the first of which read.
inline std::vector<RankGroup> nodes_of(const std::vector<int>& ranks, int roots = 1) {
  std::vector<RankGroup> groups;
  int next = 0;
  for (const int count : ranks) {
    RankGroup& group = groups.emplace_back();
    group.ranks.resize(static_cast<std::size_t>(count));
    std::iota(group.ranks.begin(), group.ranks.end(), next);
    group.roots.resize(static_cast<std::size_t>(std::min(count, roots)));
    std::iota(group.roots.begin(), group.roots.end(), 0);
    next += count;
  }
  return groups;
}

struct Delivered {
  std::uint64_t sample = 0;
  OracleRecord record;
};

/// Used by the thread of one rank.
class ReadingRank {
 public:
  /// What the reader of a root is made of.
  struct Root {
    const WindowPlan& plan;
    ReadingList& list;
    Stage& stage;
    int number;  ///< among the roots of its stage
    Turns& turns;
    std::shared_ptr<Communicator> roots;  ///< all of them
    std::shared_ptr<const RootMap> map;
    GiveUp give_up;
    std::stop_token stop;
  };
  using MakeReader = std::function<std::unique_ptr<PieceReader>(const Root&)>;

  /// Collective over `comm`, which has as many ranks as the plan.
  ReadingRank(const std::shared_ptr<Communicator>& comm, const ReadingPlan& plan,
              const StaggerOptions& turns = {})
      : comm_(comm->split(0, comm->rank())), plan_(plan) {
    const StridedOrder order(plan.entries, comm->size(), plan.batch, plan.coalesce);
    map_ = std::make_shared<const RootMap>(order, plan.groups);
    share_with(plan.groups);
    roots_ = comm_->split(root_ >= 0 ? 0 : 1, comm_->rank());
    if (root_ >= 0) stagger_ = make_stagger(*roots_, turns, nullptr);
  }
  ~ReadingRank() { close(); }
  ReadingRank(const ReadingRank&) = delete;
  ReadingRank& operator=(const ReadingRank&) = delete;

  bool is_root() const { return root_ >= 0; }
  bool failed() const { return board_->failed(); }
  const StridedOrder& order() const { return map_->order(); }
  ReadTotals totals() const { return figures_->get(); }
  /// Turns of the test's own, in place of those that the plan asks for.
  void take_turns_by(std::unique_ptr<Stagger> stagger) { stagger_ = std::move(stagger); }

  /// Local; on roots. One that never does it is like one whose file system does not answer.
  void start(std::unique_ptr<RecordSource> source, const MakeReader& make_reader) {
    const std::string path = source->path();
    start(std::move(source), path, make_reader);
  }
  /// The same over any data.
  void start(std::shared_ptr<const void> data, const std::string& path,
             const MakeReader& make_reader) {
    const GiveUp give_up = [end = end_signal_] { return (*end)(); };
    auto turns = std::make_unique<Turns>(std::move(stagger_), give_up);
    RootReaderParts parts{.path = path,
                          .rank = comm_->rank(),
                          .root = root_,
                          .first_window = 0,
                          .comm = comm_,
                          .board = board_,
                          .list = reading_list(),
                          .stage = stage_,
                          .figures = figures_,
                          .data = std::move(data),
                          .turns = std::move(turns),
                          .reader = nullptr};
    parts.reader = make_reader({.plan = map_->plan_of_rank(comm_->rank()),
                                .list = *parts.list,
                                .stage = *stage_,
                                .number = root_,
                                .turns = *parts.turns,
                                .roots = roots_,
                                .map = map_,
                                .give_up = give_up,
                                .stop = end_signal_->token()});
    reader_ = std::make_unique<RootReader>(std::move(parts), end_signal_);
  }

  /// The next batch of this rank; empty after the last. Throws the failure that is known first.
  std::optional<std::vector<Delivered>> next() {
    board_->check();
    if (iteration_ >= plan_.iterations) return std::nullopt;
    try {
      wait_for_data();
    } catch (const Error& error) {
      board_->fail(error.within({.rank = comm_->rank()}));
      stage_->wake();
      board_->check();
      throw;
    }
    std::vector<Delivered> batch = copy_of_batch();
    stage_->release(local_rank_, ++iteration_);
    return batch;
  }

  /// Ends reading as the end of a Loader does: local, idempotent.
  void close() {
    if (std::exchange(closed_, true)) return;
    if (reader_) reader_->stop(std::chrono::seconds(4));
    reader_.reset();
    if (root_ >= 0) stage_->close_root(root_);
    stage_->release_all(local_rank_);
  }

 private:
  void share_with(const std::vector<RankGroup>& groups) {
    int mine = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const auto at = std::ranges::find(groups[i].ranks, comm_->rank());
      if (at == groups[i].ranks.end()) continue;
      mine = static_cast<int>(i);
      local_rank_ = static_cast<int>(at - groups[i].ranks.begin());
      const auto root = std::ranges::find(groups[i].roots, local_rank_);
      if (root != groups[i].roots.end()) root_ = static_cast<int>(root - groups[i].roots.begin());
    }
    const auto group = comm_->split(mine, comm_->rank());
    board_ = std::make_shared<FailureBoard>(comm_, group);
    end_signal_ = std::make_shared<EndSignal>(comm_, board_);
    const StageShape shape{
        .ranks = group->size(),
        .roots = static_cast<int>(groups[static_cast<std::size_t>(mine)].roots.size()),
        .buffers = plan_.buffers,
        .iterations = plan_.coalesce,
        .entries = map_->plan_of_rank(comm_->rank()).entries(),
        .data_bytes = plan_.stage_bytes};
    stage_ = std::make_shared<Stage>(*group, shape, SharedMemoryKind::posix, 0);
  }

  std::shared_ptr<ReadingList> reading_list() const {
    const std::shared_ptr<const WindowPlan> plan(map_, &map_->plan_of_rank(comm_->rank()));
    return std::make_shared<StridedList>(plan, root_, plan_.iterations);
  }

  void wait_for_data() {
    const double deadline = now_seconds() + 60;
    while (!stage_->wait_published(iteration_, std::chrono::milliseconds(50))) {
      board_->poll();
      board_->check();
      if (now_seconds() > deadline) throw Error(ErrorKind::communication, "a test hangs");
    }
  }

  std::vector<Delivered> copy_of_batch() const {
    const auto text = [](std::span<const std::byte> bytes) {
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    const WindowPlan& plan = map_->plan_of_rank(comm_->rank());
    std::vector<Delivered> batch;
    const std::uint64_t count = order().run(comm_->rank(), iteration_).count;
    for (std::uint64_t k = 0; k < count; ++k) {
      const StageEntry& entry =
          stage_->entry(iteration_ / plan_.coalesce, plan.entry(local_rank_, iteration_, k));
      batch.push_back({entry.sample, {text(stage_->key(entry)), text(stage_->value(entry))}});
    }
    return batch;
  }

  std::shared_ptr<Communicator> comm_;
  ReadingPlan plan_;
  std::shared_ptr<const RootMap> map_;
  std::shared_ptr<Communicator> roots_;
  int local_rank_ = 0;
  int root_ = -1;  ///< number among the roots of its stage
  std::shared_ptr<FailureBoard> board_;
  std::shared_ptr<EndSignal> end_signal_;
  std::shared_ptr<Stage> stage_;
  std::shared_ptr<ReadFigures> figures_ = std::make_shared<ReadFigures>();
  std::unique_ptr<Stagger> stagger_;
  std::unique_ptr<RootReader> reader_;
  std::uint64_t iteration_ = 0;
  bool closed_ = false;
};

/// Takes batches until the end, a failure, or `most` of them, and compares each with `records`.
/// Returns how many came; the failure, if there was one, goes into `failure`.
inline std::uint64_t expect_right_batches(ReadingRank& rank, int number,
                                          const std::vector<OracleRecord>& records,
                                          std::optional<Error>* failure = nullptr,
                                          std::uint64_t most = ~std::uint64_t{0}) {
  std::uint64_t iteration = 0;
  try {
    for (; iteration < most; ++iteration) {
      const auto batch = rank.next();
      if (!batch) break;
      const forebay::Run run = rank.order().run(number, iteration);
      EXPECT_EQ(batch->size(), run.count);
      for (std::size_t k = 0; k < batch->size(); ++k) {
        const std::uint64_t sample = rank.order().sample(run.first + k);
        EXPECT_EQ((*batch)[k].sample, sample);
        EXPECT_EQ((*batch)[k].record, records[sample]) << "sample " << sample;
      }
    }
  } catch (const Error& error) {
    if (failure == nullptr) throw;
    *failure = error;
  }
  return iteration;
}

}  // namespace forebay::test
