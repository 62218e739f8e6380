// Orders whose samples come out of the memory of all ranks, as in DeepIO (Zhu et al., MASCOTS 2018,
// section III). Each rank reads its part, in long reads, and any rank fetches from there:
//
//   reading thread   file -> stage, some MB at a time
//   filling thread   stage -> this rank's share of the exchange; opens it together with all ranks
//   fetching thread  any share -> read buffer, in the order of this rank's draws, ahead of use
//   consumer         batches of spans into the read buffer
//
// Held data (the whole data set fits) are read once, and serve every epoch; else the exchange has
// two fillings, one of which is loaded while the other serves.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/number_text.hpp"
#include "exchange/read_buffer.hpp"
#include "loader/epoch_run.hpp"
#include "loader/feed.hpp"
#include "loader/packed_sample.hpp"
#include "loader/shard.hpp"
#include "loader/share_filler.hpp"
#include "loader/share_memory.hpp"
#include "loader/wanted_draws.hpp"
#include "order/order_cost.hpp"
#include "storage/storages.hpp"

namespace forebay {
namespace {

constexpr int kMostGenerations = 16;
// Samples that are looked at to learn how large they are, over all ranks, and by each at least.
constexpr std::uint64_t kLookedAt = 64;
constexpr std::uint64_t kLeastLookedAt = 4;
// What a file takes for samples, over what they are: pages, headers, and empty room.
constexpr double kMostPadding = 4;
constexpr std::chrono::seconds kLongestGoodbye{5};
constexpr std::chrono::seconds kLongestEnd{3};
constexpr std::uint64_t kAllGenerations = UINT64_MAX - 1;

// The plan ---------------------------------------------------------------------------------------

/// What is settled before the stage exists.
struct SharePlan {
  EpochPlan epochs;
  bool held = false;               ///< as opposed to loads that replace each other
  std::uint64_t load_samples = 0;  ///< of one load, at most
  ShareMemory memory;
  std::shared_ptr<LoadList> list;
  std::shared_ptr<Communicator> filling;   ///< for the thread that fills
  std::shared_ptr<Communicator> farewell;  ///< for its end
  std::shared_ptr<Exchange> exchange;
};

// Without them, data can only be loaded in open, by the main thread, and not move between nodes.
void require_threads(const Team& team, bool held) {
  if (team.world->concurrent() || (held && !team.board->several_nodes())) return;
  throw Error(ErrorKind::unsupported,
              "MPI grants less than MPI_THREAD_MULTIPLE, which loading the memory of all ranks "
              "needs on several nodes and for a part of the data set",
              "initialize MPI with MPI_THREAD_MULTIPLE, or give --hold storage");
}

double mean_stored_bytes(const DataFacts& facts) {
  return static_cast<double>(facts.stored_bytes) / static_cast<double>(facts.entries);
}

void look_at_samples(const Opened& opened, bool held, SampleSizes& sizes) {
  const Communicator& world = *opened.team.world;
  const std::uint64_t entries = opened.source.facts.entries;
  const Run from = held ? held_by(world.rank(), entries, world.size()) : Run{0, entries};
  const std::uint64_t wanted =
      std::max(kLookedAt / static_cast<std::uint64_t>(world.size()), kLeastLookedAt);
  const std::uint64_t count = std::min(wanted, from.count);
  if (count == 0) return;
  struct Look {
    std::uint64_t all = 0, largest = 0;
  };
  const auto look_at_some = [from, count, data = opened.source.data] {
    Look look;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t step = i * (from.count - 1) / std::max(count - 1, {1});
      data->read_sample(from.first + step, [&look](const Record& record) {
        const auto bytes = packed_bytes(record.value.size(), record.key.size());
        look.all += bytes;
        look.largest = std::max(look.largest, bytes);
      });
    }
    return look;
  };
  const Look look =
      ask_storage(opened.source.path, opened.options.timeout, "read some samples", look_at_some);
  sizes.largest = std::max(sizes.largest, look.largest);
  // Where the file is far larger than they make believe, large ones were missed.
  const double seen = static_cast<double>(look.all) / static_cast<double>(count);
  if (sizes.mean < kMostPadding * seen) sizes.mean = seen;
}

/// By looking at some, where that is cheap.
SampleSizes sample_sizes(const Opened& opened, bool held) {
  SampleSizes sizes{.mean = std::max(mean_stored_bytes(opened.source.facts),
                                     static_cast<double>(kPackedTrailer))};
  // Walking to samples would cost more than knowing their sizes is worth.
  if (opened.source.setup.reads_extents()) look_at_samples(opened, held, sizes);
  sizes.largest = std::max(sizes.largest, static_cast<std::uint64_t>(sizes.mean));
  return sizes;
}

ShareNeeds needs_of(const Opened& opened, const OrderOptions& order, bool held) {
  const int buffers = opened.options.buffers;
  const std::uint64_t held_samples =
      held_by(opened.team.world->rank(), order.entries, order.ranks).count;
  return {.budget_bytes = opened.buffer_bytes(),
          .sizes = sample_sizes(opened, held),
          .stored_bytes = mean_stored_bytes(opened.source.facts),
          .scattered = !held && is_scattered(order),
          .samples = held ? held_samples : most_loaded(order, !opened.options.done.empty()),
          .generations = held ? 1 : std::min(buffers, kMostGenerations),
          .windows = buffers,
          .batch_share = order.batch / static_cast<std::uint64_t>(order.ranks) + 1};
}

void make_exchange(const Opened& opened, SharePlan& plan) {
  const Team& team = opened.team;
  const LoaderOptions& options = opened.options;
  const auto node_sizes = gather_all(*team.world, team.node->size());
  const bool alone = std::ranges::all_of(node_sizes, [](int size) { return size == 1; });
  plan.exchange = std::make_shared<Exchange>(
      ExchangeParts{.world = team.world,
                    .node = team.node,
                    .board = team.board,
                    .progress = team.progress.get()},
      ExchangeOptions{.share_bytes = plan.memory.share_bytes,
                      .buffers = plan.held ? 1 : std::min(options.buffers, kMostGenerations),
                      .memory = alone ? SharedMemoryKind::mpi : options.stage,
                      .grow = true,
                      .patience = options.patience_with_ranks(),
                      .filling_patience = kForever});
  plan.filling = team.world->split(0, team.world->rank());
  plan.farewell = team.world->split(0, team.world->rank());
  if (team.world->concurrent()) plan.farewell->carry_messages();
}

SharePlan plan_shares(const Opened& opened) {
  Communicator& world = *opened.team.world;
  SharePlan plan{.epochs = plan_epochs(opened), .memory = {}, .list = {}};
  const OrderOptions& order = plan.epochs.order;
  plan.held = holds_all(opened.options);
  collectively(world, [&] { require_threads(opened.team, plan.held); });
  ShareNeeds needs;
  collectively(world, [&] { needs = needs_of(opened, order, plan.held); });
  plan.load_samples = needs.samples;
  plan.memory = divide_budget(needs);
  fit_shares(world, *opened.team.node, needs, plan.memory);
  const std::uint64_t window = plan.memory.window_samples;
  plan.list = plan.held ? std::make_shared<LoadList>(
                              held_by(world.rank(), order.entries, world.size()), window)
                        : std::make_shared<LoadList>(plan.epochs.epochs, world.rank(), window);
  make_exchange(opened, plan);
  return plan;
}

// The feed ---------------------------------------------------------------------------------------

class SharedFeed final : public Feed {
 public:
  SharedFeed(const FeedSite& site, const SharePlan& plan);
  ~SharedFeed() override { close(); }  // also where the constructor throws

  std::optional<BatchPass> next() override { return run_.next(); }
  Delivery take(const BatchPass& pass) override;
  void let_go(std::uint64_t from) override;
  RunState state() const override { return run_.state(); }
  void add_to(LoaderStatistics& all) const override;
  void close() override;

 private:
  SharedFeed(const FeedSite& site, const EpochPlan& epochs, std::shared_ptr<Exchange> exchange)
      : site_(site), run_(epochs, site.opened.team.order_rank), exchange_(std::move(exchange)) {}
  ReadBuffer::Source source(const SharePlan& plan) const;
  void take_ready(const Share& share);
  void make_room();
  void end_filling();

  FeedSite site_;
  EpochRun run_;
  std::shared_ptr<OpenedLoads> loads_ = std::make_shared<OpenedLoads>();
  std::shared_ptr<Exchange> exchange_;   ///< until close()
  std::shared_ptr<ShareFiller> filler_;  ///< likewise
  std::optional<ReadBuffer> buffer_;
  double skew_seconds_ = 0;

  /// The next batch, as far as it is there: kept when batches have to be released first.
  Delivery pending_;
  std::vector<const Block*> ready_;
  // Counted in samples of the read buffer, from the start.
  std::uint64_t taken_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t released_ = 0;
};

/// Samples may wait for a whole load, each window of which may take its time.
std::chrono::milliseconds patience_with_loads(std::chrono::milliseconds timeout,
                                              const SharePlan& plan) {
  const std::uint64_t windows = plan.load_samples / plan.memory.window_samples + 1;
  const double longest = static_cast<double>(timeout.count()) * static_cast<double>(windows);
  const auto limit = std::chrono::milliseconds(kForever);
  if (longest >= static_cast<double>(limit.count())) return limit;
  return timeout * static_cast<std::int64_t>(windows) + std::chrono::seconds(2);
}

SharedFeed::SharedFeed(const FeedSite& site, const SharePlan& plan)
    : SharedFeed(site, plan.epochs, plan.exchange) {
  const LoaderOptions& options = site.opened.options;
  const Team& team = site.opened.team;
  const Placement placement = site.opened.placement(Component::io);
  const bool ahead = options.buffers > 1;
  filler_ = std::make_shared<ShareFiller>(ShareFillerParts{.path = site.opened.source.path,
                                                           .comm = plan.filling,
                                                           .farewell = plan.farewell,
                                                           .board = team.board,
                                                           .exchange = exchange_,
                                                           .stage = site.stage,
                                                           .list = plan.list,
                                                           .loads = loads_,
                                                           .ahead = ahead,
                                                           .placement = placement,
                                                           .trace = site.trace},
                                          !team.world->concurrent());
  buffer_.emplace(exchange_,
                  ReadBufferOptions{.bytes = plan.memory.ring_bytes,
                                    .beside = plan.memory.beside_ring_bytes,
                                    .blocks = plan.memory.ring_blocks,
                                    .patience = patience_with_loads(options.timeout, plan),
                                    .ahead = ahead,
                                    .placement = placement,
                                    .interrupt = [&watch = site.watch] { watch.ask_interrupt(); },
                                    .trace = site.trace},
                  source(plan));
}

ReadBuffer::Source SharedFeed::source(const SharePlan& plan) const {
  const int rank = site_.opened.team.world->rank();
  const auto end_with = [filler = filler_](std::optional<WantedBatch> batch) {
    if (!batch) filler->reads_are_done();
    return batch;
  };
  if (plan.held) {
    return [draws = HeldDraws(plan.epochs.epochs, rank), end_with]() mutable {
      return end_with(draws.next());
    };
  }
  return [draws = LoadedDraws(loads_, rank), end_with]() mutable { return end_with(draws.next()); };
}

Delivery SharedFeed::take(const BatchPass& pass) {
  const Share share = run_.share();
  while (pending_.samples.size() < share.count) take_ready(share);
  pending_.from = std::max(delivered_, released_);
  pending_.next_from = delivered_ = taken_;
  run_.advance(pending_, pass);
  return std::exchange(pending_, {});
}

/// Some more samples of the next batch, whose draws are `share`.
void SharedFeed::take_ready(const Share& share) {
  ready_.clear();
  const std::int64_t begin = now_ns(), others_at_begin = filler_->waited_ns();
  buffer_->take(share.count - pending_.samples.size(), ready_);
  // Waiting while the filling waits for other ranks is skew, not I/O.
  const std::int64_t others = filler_->waited_ns() - others_at_begin;
  skew_seconds_ += static_cast<double>(std::min(others, now_ns() - begin)) * 1e-9;
  if (ready_.empty()) return make_room();
  for (const Block* const block : ready_) {
    const std::uint64_t position = pending_.samples.size();
    const Wanted& wanted = block->wanted;
    if (wanted.draw != share.first + position) {
      throw Error(ErrorKind::communication,
                  fmt::format("sample {}, draw {}, was fetched where draw {} belongs",
                              wanted.sample, wanted.draw, share.first + position),
                  "this is a fault of Forebay: please report it");
    }
    Sample sample = run_.sample_of(
        {.sample = wanted.sample, .position = wanted.position, .repeat = wanted.repeat});
    const UnpackedSample unpacked = unpack_sample(block->bytes);
    sample.position = position;
    sample.key = unpacked.key;
    sample.value = unpacked.value;
    pending_.samples.push_back(sample);
    ++taken_;
  }
}

void SharedFeed::make_room() {
  if (!buffer_->full()) {
    site_.watch.check();
    throw Error(ErrorKind::communication, "the samples of other ranks have ended too early",
                "this is a fault of Forebay: please report it");
  }
  if (!site_.held.empty()) {
    throw BatchesHeld(ErrorKind::usage,
                      "batches that were not released fill the memory for samples of other ranks",
                      "release batches before asking for the next, or raise --stage-bytes");
  }
  copy_out(pending_);
  let_go(taken_);
}

void SharedFeed::let_go(std::uint64_t from) {
  if (from <= released_) return;
  buffer_->release(from - released_);
  released_ = from;
}

// A rank that wants no more goes on serving the others while they come to their ends.
void SharedFeed::close() {
  loads_->close();
  if (buffer_) buffer_->stop();
  if (filler_) end_filling();
  filler_.reset();
  exchange_.reset();
}

void SharedFeed::end_filling() {
  exchange_->release(kAllGenerations);
  if (filler_->leave(kLongestGoodbye)) return;
  site_.watch.fail(
      Error(ErrorKind::cancelled,
            "this rank has closed its loader, and with it the samples that it holds for others",
            "close the loader on all ranks after the same iteration"));
  filler_->abandon(kLongestEnd);
}

void SharedFeed::add_to(LoaderStatistics& all) const {
  run_.add_to(all);
  all.skew_seconds += skew_seconds_;
  const ExchangeFigures moved = exchange_->figures();
  all.exposed_seconds = std::max(0.0, buffer_->figures().exposed_seconds - skew_seconds_);
  all.samples_read = filler_->samples();
  all.samples_fetched = moved.samples;
  all.near_bytes = moved.near_bytes;
  all.far_bytes = moved.far_bytes;
  all.fetch_seconds = moved.fetch_seconds;
}

}  // namespace

FeedPlan plan_shared(const Opened& opened) {
  const SharePlan shares = plan_shares(opened);
  return {.stage = {.ranks = 1,
                    .roots = 1,
                    .buffers = opened.options.buffers,
                    .iterations = 1,
                    .entries = shares.memory.window_samples,
                    .data_bytes = shares.memory.stage_bytes},
          .list = shares.list,
          .map = {},
          .text = fmt::format(
              "{}; {}, up to {} a rank; {}", shares.epochs.begin.identity,
              shares.held ? "all samples are held in memory" : "loads replace each other",
              format_bytes(shares.memory.share_bytes), shares.exchange->describe()),
          .epoch_iterations = shares.epochs.epoch_iterations,
          .epochs_done = shares.epochs.begin.epoch,
          .start = [shares](const FeedSite& site) {
            return std::make_unique<SharedFeed>(site, shares);
          }};
}

}  // namespace forebay
