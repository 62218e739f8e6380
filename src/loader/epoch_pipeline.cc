#include "loader/epoch_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "comm/values.hpp"
#include "loader/list_file.hpp"
#include "loader/state.hpp"
#include "order/order_cost.hpp"

namespace forebay {

void EpochPipeline::make_order() {
  read_list();
  ranks_per_node_ = node_->size();
  share_value(*comm_, ranks_per_node_);  // the last node may have fewer
  OrderOptions order;
  collectively(*comm_, [&] {
    order = order_options();
    order.validate();
  });
  identity_of_order_ = order.identity();
  require_agreement(*comm_, identity_of_order_, "the order");
  collectively(*comm_, [&] {
    require_same_order();
    epochs_.emplace(order, limits());
    epoch_iterations_ = EpochOrder(order, 0).steps();
    figures_.reuse_distance = expected_reuse_distance(order);
  });
  plan(order);
}

// Other nodes may not see the file.
void EpochPipeline::read_list() {
  if (options_.order != OrderName::listed || options_.ids) return;
  std::vector<std::uint64_t> ids;
  collectively(*comm_, [&] {
    if (comm_->rank() == 0) ids = read_list_file(options_.list);
  });
  std::uint64_t count = ids.size();
  share_value(*comm_, count);
  ids.resize(count);
  if (count > 0) comm_->broadcast(std::as_writable_bytes(std::span(ids)), 0);
  options_.ids = std::make_shared<const std::vector<std::uint64_t>>(std::move(ids));
}

// Without a size of groups, files are the groups.
SharedNumbers EpochPipeline::bounds() const {
  const bool by_file =
      options_.order == OrderName::grouped && options_.group == 0 && !facts_.files.empty();
  return by_file ? std::make_shared<const std::vector<std::uint64_t>>(facts_.files) : nullptr;
}

OrderOptions EpochPipeline::order_options() const {
  OrderOptions order = options_;
  order.entries = facts_.entries;
  order.ranks = order_ranks();
  order.bounds = bounds();
  order.ranks_per_node = ranks_per_node_;
  return order;
}

RunLimits EpochPipeline::limits() const {
  RunLimits limits{.start = {.epoch = options_.first_epoch, .done = options_.done}};
  if (options_.iterations > 0) limits.iterations = options_.iterations - options_.first_iteration;
  if (options_.epochs > 0) limits.epochs = options_.epochs;
  return limits;
}

void EpochPipeline::require_same_order() const {
  if (options_.order_identity.empty() || options_.order_identity == identity_of_order_) return;
  throw Error(ErrorKind::usage,
              fmt::format("the run to resume had the order {}, this one has {}",
                          options_.order_identity, identity_of_order_),
              "give the same options of the order");
}

std::string EpochPipeline::order_text() const { return identity_of_order_; }

bool EpochPipeline::more() {
  while (!epoch_ || step_ == epoch_->end) {
    auto next = epochs_->next();
    if (order_rank() == 0) figures_.dropped = epochs_->dropped();
    if (!next) return false;
    epoch_ = std::move(next);
    step_ = epoch_->begin;
  }
  return true;
}

BatchPass EpochPipeline::pass() const {
  if (options_.reuse == 1) return {};
  const EpochOrder& order = epoch_->order;
  const std::uint64_t pass = order.pass(step_);
  return {.number = pass % options_.reuse,
          .ends = step_ + 1 == order.steps() || order.pass(step_ + 1) != pass};
}

Sample EpochPipeline::sample_of(const Draw& drawn) const {
  const EpochOrder& order = epoch_->order;
  return {.id = drawn.sample,
          .global = order.epoch() * order.size() + drawn.position,
          .epoch = order.epoch(),
          .position = 0,
          .run_seed = options_.seed,
          .key = {},
          .value = {},
          .repeat = drawn.repeat};
}

void EpochPipeline::copy_out(Delivery& delivery) {
  for (std::size_t i = delivery.copies.size(); i < delivery.samples.size(); ++i) {
    Sample& sample = delivery.samples[i];
    const std::size_t key_bytes = sample.key.size(), value_bytes = sample.value.size();
    auto copy = std::make_unique<std::byte[]>(key_bytes + value_bytes);
    if (value_bytes > 0) std::memcpy(copy.get(), sample.value.data(), value_bytes);
    if (key_bytes > 0) std::memcpy(copy.get() + value_bytes, sample.key.data(), key_bytes);
    sample.value = {copy.get(), value_bytes};
    sample.key = {copy.get() + value_bytes, key_bytes};
    delivery.copies.push_back(std::move(copy));
  }
}

std::uint64_t EpochPipeline::epochs_done() const {
  if (!epoch_) return options_.first_epoch;
  return epoch_->order.epoch() + (step_ == epoch_->order.steps() ? 1 : 0);
}

RunState EpochPipeline::state() const {
  OrderProgress now{.epoch = options_.first_epoch, .done = options_.done};
  if (epoch_) {
    now = {.epoch = epoch_->order.epoch(), .done = epoch_->before};
    if (step_ == epoch_->order.steps()) {
      now = {.epoch = now.epoch + 1, .done = {}};
    } else if (step_ > 0) {
      now.done.push_back({.ranks = order_ranks(), .batch = options_.batch, .iterations = step_});
    }
  }
  return {.order = options_.order,
          .fingerprint = identity_,
          .entries = facts_.entries,
          .identity = identity_of_order_,
          .epoch = now.epoch,
          .iterations = iteration_,
          .segments = now.done};
}

}  // namespace forebay
