#include "loader/shared_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/number_text.hpp"
#include "loader/packed_sample.hpp"
#include "loader/wanted_draws.hpp"
#include "order/most_loaded.hpp"

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

}  // namespace

bool SharedPipeline::suits(const LoaderOptions& options, int ranks) {
  if (options.hold == Hold::memory) return true;
  if (options.order == OrderName::in_memory) return ranks > 1 || options.ratio == 1;
  return ranks > 1 && options.reuse > 1 && options.reuse_scope != ReuseScope::process;
}

void SharedPipeline::plan(const OrderOptions& order) {
  held_data_ =
      options_.hold == Hold::memory || (order.order == OrderName::in_memory && order.ratio == 1);
  collectively(*comm_, [&] { require_threads(); });
  ShareNeeds needs;
  collectively(*comm_, [&] { needs = this->needs(order); });
  load_samples_ = needs.samples;
  memory_ = divide_budget(needs);
  fit_shares(*comm_, *node_, needs, memory_);
  if (held_data_) {
    feed_ = std::make_shared<LoadFeed>(held_by(comm_->rank(), facts_.entries, comm_->size()),
                                       memory_.window_samples);
  } else {
    feed_ = std::make_shared<LoadFeed>(*epochs_, comm_->rank(), memory_.window_samples);
  }
  make_exchange();
}

// Without them, data can only be loaded in open, by the main thread, and not move between nodes.
void SharedPipeline::require_threads() const {
  if (comm_->concurrent() || (held_data_ && !board_->several_nodes())) return;
  throw Error(ErrorKind::unsupported,
              "MPI grants less than MPI_THREAD_MULTIPLE, which loading the memory of all ranks "
              "needs on several nodes and for a part of the data set",
              "initialize MPI with MPI_THREAD_MULTIPLE, or give --hold storage");
}

ShareNeeds SharedPipeline::needs(const OrderOptions& order) {
  const auto ranks = static_cast<std::uint64_t>(order.ranks);
  ShareNeeds needs{.budget_bytes = buffer_budget(),
                   .sizes = sample_sizes(),
                   .stored_bytes = static_cast<double>(facts_.stored_bytes) /
                                   static_cast<double>(facts_.entries),
                   .scattered = !held_data_ && is_scattered(order)};
  needs.samples = held_data_ ? held_by(comm_->rank(), facts_.entries, order.ranks).count
                             : most_loaded(order, !options_.done.empty());
  needs.generations = held_data_ ? 1 : std::min(options_.buffers, kMostGenerations);
  needs.windows = options_.buffers;
  needs.batch_share = order.batch / ranks + 1;
  return needs;
}

/// By looking at some, where that is cheap.
SampleSizes SharedPipeline::sample_sizes() {
  SampleSizes sizes{.mean = static_cast<double>(facts_.stored_bytes) /
                            static_cast<double>(facts_.entries)};
  sizes.mean = std::max(sizes.mean, static_cast<double>(kPackedTrailer));
  // Walking to samples would cost more than knowing their sizes is worth.
  if (setup_.reads_extents()) look_at_samples(sizes);
  sizes.largest = std::max(sizes.largest, static_cast<std::uint64_t>(sizes.mean));
  return sizes;
}

void SharedPipeline::look_at_samples(SampleSizes& sizes) {
  Run from{0, facts_.entries};
  if (held_data_) from = held_by(comm_->rank(), facts_.entries, comm_->size());
  const std::uint64_t wanted =
      std::max(kLookedAt / static_cast<std::uint64_t>(comm_->size()), kLeastLookedAt);
  const std::uint64_t count = std::min(wanted, from.count);
  std::uint64_t all = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t sample = from.first + i * (from.count - 1) / std::max(count - 1, {1});
    data_->read_sample(sample, [&](const Record& record) {
      const std::uint64_t bytes = packed_bytes(record.value.size(), record.key.size());
      all += bytes;
      sizes.largest = std::max(sizes.largest, bytes);
    });
  }
  if (count == 0) return;
  // Where the file is far larger than they make believe, large ones were missed.
  const double seen = static_cast<double>(all) / static_cast<double>(count);
  if (sizes.mean < kMostPadding * seen) sizes.mean = seen;
}

void SharedPipeline::make_exchange() {
  const auto node_sizes = gather_all(*comm_, node_->size());
  const bool alone = std::ranges::all_of(node_sizes, [](int size) { return size == 1; });
  exchange_ = std::make_shared<Exchange>(
      ExchangeParts{.world = comm_, .node = node_, .board = board_, .progress = progress_.get()},
      ExchangeOptions{.share_bytes = memory_.share_bytes,
                      .buffers = held_data_ ? 1 : std::min(options_.buffers, kMostGenerations),
                      .memory = alone ? SharedMemoryKind::mpi : options_.stage,
                      .grow = true,
                      .patience = options_.patience_with_ranks(),
                      .filling_patience = kForever});
  exchange_text_ = exchange_->describe();
  filling_ = comm_->split(0, comm_->rank());
  farewell_ = comm_->split(0, comm_->rank());
  if (comm_->concurrent()) farewell_->carry_messages();
}

StageShape SharedPipeline::stage_shape() const {
  return {.ranks = 1,
          .roots = 1,
          .buffers = options_.buffers,
          .coalesce = 1,
          .entries = memory_.window_samples,
          .data_bytes = memory_.stage_bytes};
}

void SharedPipeline::started() {
  filler_ = std::make_shared<ShareFiller>(ShareFillerParts{.path = path_,
                                                           .comm = filling_,
                                                           .farewell = farewell_,
                                                           .board = board_,
                                                           .exchange = exchange_,
                                                           .stage = stage_,
                                                           .feed = feed_,
                                                           .loads = loads_,
                                                           .ahead = options_.buffers > 1,
                                                           .placement = placement_of(Component::io),
                                                           .trace = trace_},
                                          !comm_->concurrent());
  buffer_.emplace(exchange_,
                  ReadBufferOptions{.bytes = memory_.ring_bytes,
                                    .beside = memory_.beside_ring_bytes,
                                    .blocks = memory_.ring_blocks,
                                    .patience = patience_with_loads(),
                                    .ahead = options_.buffers > 1,
                                    .placement = placement_of(Component::io),
                                    .interrupt = [this] { ask_interrupt(); },
                                    .trace = trace_},
                  source());
}

/// Samples may wait for a whole load, each window of which may take its time.
std::chrono::milliseconds SharedPipeline::patience_with_loads() const {
  const std::uint64_t windows = load_samples_ / memory_.window_samples + 1;
  const double longest =
      static_cast<double>(options_.timeout.count()) * static_cast<double>(windows);
  const auto limit = std::chrono::milliseconds(kForever);
  if (longest >= static_cast<double>(limit.count())) return limit;
  return options_.timeout * static_cast<std::int64_t>(windows) + std::chrono::seconds(2);
}

ReadBuffer::Source SharedPipeline::source() const {
  const auto end_with = [filler = filler_](std::optional<WantedBatch> batch) {
    if (!batch) filler->reads_are_done();
    return batch;
  };
  if (held_data_) {
    return [draws = HeldDraws(*epochs_, comm_->rank()), end_with]() mutable {
      return end_with(draws.next());
    };
  }
  return [draws = LoadedDraws(loads_, comm_->rank()), end_with]() mutable {
    return end_with(draws.next());
  };
}

Delivery SharedPipeline::take() {
  const Share share = epoch_->order.share(comm_->rank(), step_);
  while (pending_.samples.size() < share.count) take_ready(share.first, share.count);
  pending_.epoch = epoch_->order.epoch();
  pending_.from = std::max(delivered_, released_);
  delivered_ = taken_;
  ++step_;
  return std::exchange(pending_, {});
}

/// Some more samples of the next batch, whose draws begin with `first`.
void SharedPipeline::take_ready(std::uint64_t first, std::uint64_t count) {
  ready_.clear();
  const std::int64_t begin = now_ns(), others_at_begin = filler_->waited_ns();
  buffer_->take(count - pending_.samples.size(), ready_);
  // Waiting while the filling waits for other ranks is skew, not I/O.
  const std::int64_t others = filler_->waited_ns() - others_at_begin;
  figures_.skew_seconds += static_cast<double>(std::min(others, now_ns() - begin)) * 1e-9;
  if (ready_.empty()) return make_room();
  for (const Block* const block : ready_) {
    const std::uint64_t position = pending_.samples.size();
    const Wanted& wanted = block->wanted;
    if (wanted.draw != first + position) {
      throw Error(ErrorKind::communication,
                  fmt::format("sample {}, draw {}, was fetched where draw {} belongs",
                              wanted.sample, wanted.draw, first + position),
                  "this is a fault of Forebay: please report it");
    }
    Sample sample =
        sample_of({.sample = wanted.sample, .position = wanted.position, .repeat = wanted.repeat});
    const UnpackedSample unpacked = unpack_sample(block->bytes);
    sample.position = position;
    sample.key = unpacked.key;
    sample.value = unpacked.value;
    pending_.samples.push_back(sample);
    ++taken_;
  }
}

void SharedPipeline::make_room() {
  if (!buffer_->full()) {
    check();
    throw Error(ErrorKind::communication, "the samples of other ranks have ended too early",
                "this is a fault of Forebay: please report it");
  }
  if (!held_.empty()) {
    throw BatchesHeld(ErrorKind::usage,
                      "batches that were not released fill the memory for samples of other ranks",
                      "release batches before asking for the next, or raise --stage-bytes");
  }
  copy_out(pending_);
  let_go(taken_);
}

void SharedPipeline::let_go(std::uint64_t from) {
  if (from <= released_) return;
  buffer_->release(from - released_);
  released_ = from;
}

// A rank that wants no more goes on serving the others while they come to their ends.
void SharedPipeline::close() {
  if (exchange_) at_end_ = statistics();
  loads_->close();
  if (buffer_) buffer_->stop();
  if (filler_) end_filling();
  filler_.reset();
  exchange_.reset();
  Pipeline::close();
}

void SharedPipeline::end_filling() {
  exchange_->release(kAllGenerations);
  if (filler_->leave(kLongestGoodbye)) return;
  fail(Error(ErrorKind::cancelled,
             "this rank has closed its loader, and with it the samples that it holds for others",
             "close the loader on all ranks after the same iteration"));
  filler_->abandon(kLongestEnd);
}

std::string SharedPipeline::order_text() const {
  return fmt::format("{}; {}, up to {} a rank; {}", EpochPipeline::order_text(),
                     held_data_ ? "all samples are held in memory" : "loads replace each other",
                     format_bytes(memory_.share_bytes), exchange_text_);
}

LoaderWaits SharedPipeline::waits() const {
  LoaderWaits waits = Pipeline::waits();
  waits.data = buffer_ ? std::max(0.0, buffer_->figures().exposed_seconds - waits.ranks)
                       : at_end_.exposed_seconds;
  return waits;
}

LoaderStatistics SharedPipeline::statistics() const {
  LoaderStatistics all = Pipeline::statistics();
  if (!exchange_ || !buffer_ || !filler_) {
    all.exposed_seconds = at_end_.exposed_seconds;
    all.samples_read = at_end_.samples_read;
    return all;
  }
  const ExchangeFigures moved = exchange_->figures();
  all.exposed_seconds = std::max(0.0, buffer_->figures().exposed_seconds - all.skew_seconds);
  all.samples_read = filler_->samples();
  all.samples_fetched = moved.samples;
  all.near_bytes = moved.near_bytes;
  all.far_bytes = moved.far_bytes;
  all.fetch_seconds = moved.fetch_seconds;
  return all;
}

}  // namespace forebay
