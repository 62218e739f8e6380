// The strided order: windows of C iterations, read by the roots of a node for all of its ranks.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "comm/posix_shared_memory.hpp"
#include "comm/values.hpp"
#include "loader/feed.hpp"
#include "read/stagger.hpp"
#include "read/windows_together.hpp"

namespace forebay {
namespace {

// As OrderOptions has it of the other orders; a run that goes on may have less left.
void require_a_full_batch(const StridedOrder& order) {
  const bool none = order.limit().end == OrderEnd::drop && order.iterations() == 0;
  if (!none || order.start() > 0) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} epochs of {} samples do not make one batch of {}",
                          order.limit().epochs, order.entries(), order.batch()),
              "with --end drop, lower --batch; or give --end pad, wrap or exact");
}

StridedOrder order_of(const Opened& opened, std::uint64_t coalesce, StridedStart start = {}) {
  const LoaderOptions& options = opened.options;
  return {opened.source.facts.entries,
          opened.team.order_ranks,
          options.batch,
          coalesce,
          std::move(start),
          {.epochs = options.epochs, .end = options.order_end()}};
}

std::uint64_t coalesce_of(const Opened& opened) {
  const LoaderOptions& options = opened.options;
  if (options.coalesce > 0) return options.coalesce;
  if (!opened.source.setup.coalesces) return 1;
  const DataFacts& facts = opened.source.facts;
  return automatic_coalesce(facts.entries, facts.file_bytes, opened.team.order_ranks,
                            options.batch);
}

/// What all buffers of this rank's node may take: also shared memory may be short.
std::uint64_t room_of_stage(const Opened& opened) {
  const std::uint64_t stage = opened.bytes_beside_arrays();
  return opened.has_posix_stage() ? std::min(stage, free_shared_memory()) : stage;
}

std::uint64_t end_of_run(const Opened& opened, const StridedOrder& order) {
  const std::uint64_t iterations = opened.options.iterations;
  return iterations > 0 ? iterations : order.iterations();
}

/// Windows of the run.
std::uint64_t windows_of(const Opened& opened, const StridedOrder& order) {
  return (end_of_run(opened, order) - opened.options.first_iteration) / order.coalesce();
}

/// Where roots take turns: how many windows may be read together so that a run has enough of them.
/// One, where few read at once: the windows of a root lie apart, and are a stream each.
std::optional<std::uint64_t> most_in_turns(const Opened& opened, const StridedOrder& order) {
  const int roots = opened.team.all_roots();
  const int stagger = opened.source.setup.stagger;
  if (roots <= 1 || stagger == kNoStagger) return std::nullopt;
  const KnownStagger& known = opened.options.known_stagger;
  const bool found = stagger == kMeasureStagger && is_of(known, roots);
  if (found || stagger > 0) return (found ? known.at_once : stagger) < roots ? 1 : UINT64_MAX;
  const std::uint64_t windows = windows_of(opened, order);
  if (windows < kTurnsWorthLooking) return std::nullopt;  // then nobody looks for a number
  return windows / kTurnsWorthLooking;
}

/// How many windows of `order` are read together. `stage_bytes`: of the node with the least room,
/// so that all roots read in as many steps.
std::uint64_t together_of(const Opened& opened, const StridedOrder& order,
                          std::uint64_t stage_bytes) {
  if (!opened.source.setup.coalesces || opened.source.setup.walks()) return 1;
  const DataFacts& facts = opened.source.facts;
  const auto most = most_in_turns(opened, order);
  const std::uint64_t enough = facts.local ? kEnoughLocalBytes : kEnoughBytes;
  return windows_together(
      {.entries = facts.entries,
       .sample_bytes =
           static_cast<double>(facts.stored_bytes) / static_cast<double>(facts.entries) +
           static_cast<double>(sizeof(StageEntry)),
       .window = order.coalesce() * order.batch(),
       .node_share = RootMap(order, opened.team.groups).largest_share(),
       .buffer_bytes = stage_bytes / static_cast<std::uint64_t>(opened.options.buffers),
       .enough_bytes = most ? kEnoughInTurnsBytes : enough,
       .most = most.value_or(UINT64_MAX)});
}

class StridedFeed final : public Feed {
 public:
  StridedFeed(const FeedSite& site, std::shared_ptr<const RootMap> map, std::uint64_t end)
      : site_(site),
        map_(std::move(map)),
        plan_(map_->plan_of_rank(site_.opened.team.order_rank)),
        end_(end),
        iteration_(options().first_iteration) {}

  std::optional<BatchPass> next() override {
    ended_ = iteration_ >= end_;
    return ended_ ? std::nullopt : std::optional(BatchPass());
  }
  Delivery take(const BatchPass& pass) override;
  std::optional<std::uint64_t> end_of_next() const override { return iteration_ + 1; }
  void let_go(std::uint64_t from) override {
    site_.stage->release(site_.opened.team.group->rank(), from);
  }
  RunState state() const override;
  void add_to(LoaderStatistics& all) const override {
    if (ended_ && site_.opened.team.order_rank == 0) all.dropped = order().dropped();
  }
  std::uint64_t epochs_done() const;

 private:
  const LoaderOptions& options() const { return site_.opened.options; }
  const StridedOrder& order() const { return map_->order(); }
  Sample sample_at(const Run& run, std::uint64_t position) const;

  FeedSite site_;
  std::shared_ptr<const RootMap> map_;
  const WindowPlan& plan_;  ///< of this rank's group, inside map_
  std::uint64_t end_;       ///< iterations in all
  std::uint64_t iteration_;
  bool ended_ = false;
};

Delivery StridedFeed::take(const BatchPass& pass) {
  site_.data.wait(iteration_, iteration_);
  const Run run = order().run(site_.opened.team.order_rank, iteration_);
  // The last batch may have nothing for this rank.
  const std::uint64_t epoch = run.count > 0 ? order().epoch(run.first) : options().epochs - 1;
  Delivery delivery{
      .samples = {}, .epoch = epoch, .from = iteration_, .copies = {}, .iteration = iteration_};
  delivery.samples.reserve(run.count);
  for (std::uint64_t k = 0; k < run.count; ++k) delivery.samples.push_back(sample_at(run, k));
  delivery.pass = pass;
  delivery.next_from = ++iteration_;
  delivery.epochs_done = epochs_done();
  return delivery;
}

Sample StridedFeed::sample_at(const Run& run, std::uint64_t position) const {
  const std::uint64_t global = order().global(run.first + position);
  const std::uint64_t epoch = global / order().entries();
  const int local_rank = site_.opened.team.group->rank();
  const StageEntry& entry = site_.stage->entry_of(iteration_ / plan_.iterations(),
                                                  plan_.entry(local_rank, iteration_, position),
                                                  global % order().entries());
  return {.id = entry.sample,
          .global = global,
          .epoch = epoch,
          .position = position,
          .run_seed = options().seed,
          .key = site_.stage->key(entry),
          .value = site_.stage->value(entry),
          .repeat = order().repeats(run.first + position)};
}

/// In a coalesced window, what was taken is not all in a row. Of the last epoch `drop` takes no
/// more.
std::uint64_t epochs_in(const StridedOrder& order, std::uint64_t iteration, std::uint64_t end) {
  if (order.limit().epochs > 0 && iteration >= end) return order.limit().epochs;
  std::uint64_t epochs = (order.start() + iteration * order.batch()) / order.entries();
  while (epochs > 0 && order.iterations(epochs) > iteration) --epochs;
  return epochs;
}

std::uint64_t StridedFeed::epochs_done() const { return epochs_in(order(), iteration_, end_); }

RunState StridedFeed::state() const {
  std::vector<Segment> segments = options().done;
  segments.push_back({.ranks = order().ranks(),
                      .batch = order().batch(),
                      .iterations = iteration_,
                      .epochs = order().ends_within(iteration_) ? options().epochs : 0});
  return {.fingerprint = site_.opened.identity,
          .coalesce = order().coalesce(),
          .entries = order().entries(),
          .epoch = order().after(iteration_).position / order().entries(),
          .segments = std::move(segments)};
}

}  // namespace

FeedPlan plan_strided(const Opened& opened) {
  const LoaderOptions& options = opened.options;
  const Team& team = opened.team;
  const std::uint64_t stage_bytes =
      std::ranges::min(gather_all(*team.world, room_of_stage(opened)));
  FeedPlan plan;
  std::optional<StridedOrder> planned;
  std::uint64_t together = 1;
  collectively(*team.world, [&] {
    const std::uint64_t coalesce = coalesce_of(opened);
    planned = order_of(opened, coalesce,
                       start_after(opened.source.facts.entries, coalesce, options.done));
    require_a_full_batch(*planned);
    together = together_of(opened, *planned, stage_bytes);
  });
  const StridedOrder& order = *planned;
  // Only roots know how records are found in the end; rank 0 is one.
  share_value(*team.world, together);
  plan.map = std::make_shared<const RootMap>(order, team.groups, together);
  plan.end = end_of_run(opened, order);
  const WindowPlan& window = plan.map->plan_of_rank(team.order_rank);
  plan.stage = {.ranks = team.group->size(),
                .roots = opened.source.setup.roots,
                .buffers = options.buffers,
                .iterations = window.iterations(),
                .entries = window.entries(),
                .data_bytes = opened.buffer_bytes()};
  plan.first = options.first_iteration;
  plan.turns = (plan.end - plan.first) / window.iterations();
  plan.list = std::make_shared<StridedList>(std::shared_ptr<const WindowPlan>(plan.map, &window),
                                            team.root, plan.end);
  plan.in_place = true;
  plan.text = fmt::format("C = {}", order.coalesce());
  if (together > 1) plan.text += fmt::format(", {} windows read together", together);
  plan.epoch_iterations = order_of(opened, order.coalesce()).iterations(1);
  plan.epochs_done = epochs_in(order, plan.first, plan.end);
  plan.start = [map = plan.map, end = plan.end](const FeedSite& site) {
    return std::make_unique<StridedFeed>(site, map, end);
  };
  return plan;
}

}  // namespace forebay
