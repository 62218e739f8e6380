#include "loader/epoch_run.hpp"

#include <fmt/format.h>

#include <cstring>

#include "comm/values.hpp"
#include "forebay/packed_parts.hpp"
#include "loader/list_file.hpp"
#include "order/order_cost.hpp"
#include "order/order_table.hpp"

namespace forebay {
namespace {

/// Other nodes may not see the file.
SharedNumbers read_ids(Communicator& world, const LoaderOptions& options) {
  if (!order_row(options.order).takes_ids || options.ids) return options.ids;
  std::vector<std::uint64_t> ids;
  collectively(world, [&] {
    if (world.rank() == 0) ids = read_list_file(options.list, options.timeout);
  });
  std::uint64_t count = ids.size();
  share_value(world, count);
  ids.resize(count);
  if (count > 0) world.broadcast(std::as_writable_bytes(std::span(ids)), 0);
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(ids));
}

/// Without a size of groups, files are the groups.
SharedNumbers bounds_of(const Opened& opened) {
  const auto& files = opened.source.facts.files;
  const OrderRow& row = order_row(opened.options.order);
  const bool units = row.rounds && !row.exchanges;
  const bool by_file = units && opened.options.group == 0 && !files.empty();
  return by_file ? std::make_shared<const std::vector<std::uint64_t>>(files) : nullptr;
}

OrderOptions agreed_order(const Opened& opened) {
  OrderOptions order = opened.options;
  Communicator& world = *opened.team.world;
  order.ids = read_ids(world, opened.options);
  order.ranks_per_node = opened.team.node->size();
  share_value(world, order.ranks_per_node);  // the last node may have fewer
  collectively(world, [&] {
    order.entries = opened.source.facts.entries;
    order.ranks = opened.team.order_ranks;
    order.bounds = bounds_of(opened);
    order.validate();
  });
  require_agreement(world, order.identity(), "the order");
  return order;
}

RunLimits limits_of(const RunOptions& options) {
  RunLimits limits{.start = {.epoch = options.first_epoch, .done = options.done}};
  if (options.iterations > 0) limits.iterations = options.iterations - options.first_iteration;
  if (options.epochs > 0) limits.epochs = options.epochs;
  return limits;
}

void require_same_order(const std::string& before, const std::string& now) {
  if (before.empty() || before == now) return;
  throw Error(ErrorKind::usage,
              fmt::format("the run to resume had the order {}, this one has {}", before, now),
              "give the same options of the order");
}

}  // namespace

EpochPlan plan_epochs(const Opened& opened) {
  const LoaderOptions& options = opened.options;
  const OrderOptions order = agreed_order(opened);
  std::optional<EpochPlan> plan;
  collectively(*opened.team.world, [&] {
    require_same_order(options.order_identity, order.identity());
    plan = {.order = order,
            .epochs = RunEpochs(order, limits_of(options)),
            .begin = {.order = order.order,
                      .fingerprint = opened.identity,
                      .entries = order.entries,
                      .identity = order.identity(),
                      .epoch = options.first_epoch,
                      .iterations = options.first_iteration,
                      .segments = options.done},
            .epoch_iterations = EpochOrder(order, 0).steps(),
            .reuse_distance = expected_reuse_distance(order)};
  });
  return *plan;
}

void copy_out(Delivery& delivery) {
  for (std::size_t i = delivery.copies.size(); i < delivery.samples.size(); ++i) {
    Sample& sample = delivery.samples[i];
    const std::size_t key_bytes = sample.key.size(), value_bytes = packed_size(sample.value);
    auto copy = std::make_unique<std::byte[]>(key_bytes + value_bytes);
    copy_packed(sample.value, {copy.get(), value_bytes});
    if (key_bytes > 0) std::memcpy(copy.get() + value_bytes, sample.key.data(), key_bytes);
    sample.value = {copy.get(), value_bytes};
    sample.key = {copy.get() + value_bytes, key_bytes};
    delivery.copies.push_back(std::move(copy));
  }
}

std::optional<BatchPass> EpochRun::next() {
  while (!epoch_ || step_ == epoch_->end) {
    auto next = epochs_.next();
    if (!next) return std::nullopt;
    epoch_ = std::move(next);
    step_ = epoch_->begin;
  }
  const std::uint64_t reuse = order().options().reuse;
  if (reuse == 1) return BatchPass();
  const std::uint64_t pass = order().pass(step_);
  return BatchPass{.number = pass % reuse,
                   .ends = step_ + 1 == order().steps() || order().pass(step_ + 1) != pass};
}

Sample EpochRun::sample_of(const Draw& drawn) const {
  return {.id = drawn.sample,
          .global = order().epoch() * order().size() + drawn.position,
          .epoch = order().epoch(),
          .position = 0,
          .run_seed = order().options().seed,
          .key = {},
          .value = {},
          .repeat = drawn.repeat};
}

void EpochRun::advance(Delivery& delivery, const BatchPass& pass) {
  delivery.iteration = iteration();
  ++taken_;
  delivery.epoch = order().epoch();
  delivery.pass = pass;
  ++step_;
  delivery.epochs_done = order().epoch() + (step_ == order().steps() ? 1 : 0);
}

RunState EpochRun::state() const {
  RunState state = begin_;
  state.iterations += taken_;
  if (!epoch_) return state;
  state.epoch = order().epoch();
  state.segments = epoch_->before;
  if (step_ == order().steps()) {
    ++state.epoch;
    state.segments.clear();
  } else if (step_ > 0) {
    const OrderOptions& options = order().options();
    state.segments.push_back({.ranks = options.ranks, .batch = options.batch, .iterations = step_});
  }
  return state;
}

void EpochRun::add_to(LoaderStatistics& all) const {
  all.reuse_distance = reuse_distance_;
  if (rank_ == 0) all.dropped = epochs_.dropped();
}

}  // namespace forebay
