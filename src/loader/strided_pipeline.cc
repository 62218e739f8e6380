#include "loader/strided_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/values.hpp"
#include "loader/state.hpp"
#include "read/coalesce.hpp"

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

}  // namespace

void StridedPipeline::make_order() {
  const std::uint64_t stage_bytes = std::ranges::min(gather_all(*comm_, budget_beside_arrays()));
  collectively(*comm_, [&] {
    if (options_.coalesce == 0) choose_coalesce(order_from({}), stage_bytes);
    const StridedOrder order =
        order_from(start_after(facts_.entries, options_.coalesce, options_.done));
    require_a_full_batch(order);
    map_ = std::make_shared<const RootMap>(order, groups_);
    plan_ = &map_->plan_of_rank(order_rank());
    end_ = options_.iterations > 0 ? options_.iterations : order.iterations();
  });
}

StridedOrder StridedPipeline::order_from(StridedStart start) const {
  return {facts_.entries,   order_ranks(),
          options_.batch,   std::max<std::uint64_t>(1, options_.coalesce),
          std::move(start), {.epochs = options_.epochs, .end = options_.order_end()}};
}

void StridedPipeline::choose_coalesce(const StridedOrder& plain, std::uint64_t stage_bytes) {
  options_.coalesce = 1;
  // Other shards may have other memory, and nobody to ask: they would choose other orders.
  if (!setup_.coalesce_by_memory || options_.shard != Shard()) return;
  options_.coalesce = forebay::choose_coalesce(
      {.entries = facts_.entries,
       .stored_bytes = facts_.stored_bytes,
       .batch = options_.batch,
       .node_share = RootMap(plain, groups_).largest_share(),
       .buffer_bytes = stage_bytes / static_cast<std::uint64_t>(options_.buffers),
       .enough_bytes = facts_.local ? kEnoughLocalBytes : kEnoughBytes});
}

StageShape StridedPipeline::stage_shape() const {
  return {.ranks = group_->size(),
          .roots = setup_.roots,
          .buffers = options_.buffers,
          .coalesce = options_.coalesce,
          .entries = plan_->entries(),
          .data_bytes = buffer_budget()};
}

std::shared_ptr<ReadingList> StridedPipeline::reading_list() {
  return std::make_shared<StridedList>(std::shared_ptr<const WindowPlan>(map_, plan_), root_, end_);
}

void StridedPipeline::complete(ReaderSite& site) const {
  site.in_place = may_use_in_place();
  site.map = map_;
  site.plan = plan_;
  site.first_iteration = options_.first_iteration;
  site.end_iteration = end_;
}

std::string StridedPipeline::order_text() const { return fmt::format("C = {}", options_.coalesce); }

bool StridedPipeline::more() {
  if (iteration_ < end_) return true;
  if (order_rank() == 0) figures_.dropped = order().dropped();
  return false;
}

void StridedPipeline::require_free_buffers() const {
  if (held_.empty()) return;
  const std::uint64_t oldest = held_.front().from / options_.coalesce;
  const auto buffers = static_cast<std::uint64_t>(options_.buffers);
  if (iteration_ / options_.coalesce >= oldest + buffers) refuse_held_buffers();
}

Delivery StridedPipeline::take() {
  wait_for_data(iteration_);
  const Run run = order().run(order_rank(), iteration_);
  // The last batch may have nothing for this rank.
  const std::uint64_t epoch = run.count > 0 ? order().epoch(run.first) : options_.epochs - 1;
  Delivery delivery{.samples = {}, .epoch = epoch, .from = iteration_, .copies = {}};
  delivery.samples.reserve(run.count);
  for (std::uint64_t k = 0; k < run.count; ++k) delivery.samples.push_back(sample_at(run, k));
  return delivery;
}

Sample StridedPipeline::sample_at(const Run& run, std::uint64_t position) const {
  const std::uint64_t global = order().global(run.first + position);
  const std::uint64_t epoch = global / facts_.entries;
  const StageEntry& entry =
      stage_->entry_of(iteration_ / options_.coalesce,
                       plan_->entry(local_rank_, iteration_, position), global % facts_.entries);
  return {.id = entry.sample,
          .global = global,
          .epoch = epoch,
          .position = position,
          .run_seed = options_.seed,
          .key = stage_->key(entry),
          .value = stage_->value(entry),
          .repeat = order().repeats(run.first + position)};
}

std::uint64_t StridedPipeline::epoch_iterations() const { return order_from({}).iterations(1); }

// In a coalesced window, what was taken is not all in a row. Of the last epoch `drop` takes no
// more.
std::uint64_t StridedPipeline::epochs_done() const {
  if (options_.epochs > 0 && iteration_ >= end_) return options_.epochs;
  std::uint64_t epochs = (order().start() + iteration_ * options_.batch) / entries();
  while (epochs > 0 && order().iterations(epochs) > iteration_) --epochs;
  return epochs;
}

RunState StridedPipeline::state() const {
  std::vector<Segment> segments = options_.done;
  segments.push_back({.ranks = order_ranks(),
                      .batch = options_.batch,
                      .iterations = iteration_,
                      .epochs = order().ends_within(iteration_) ? options_.epochs : 0});
  return {.fingerprint = identity_,
          .coalesce = options_.coalesce,
          .entries = facts_.entries,
          .epoch = order().after(iteration_).position / facts_.entries,
          .segments = std::move(segments)};
}

}  // namespace forebay
