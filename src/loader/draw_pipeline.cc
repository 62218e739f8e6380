#include "loader/draw_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "comm/agreement.hpp"
#include "comm/values.hpp"
#include "loader/list_file.hpp"
#include "loader/state.hpp"
#include "order/round_plan.hpp"

namespace forebay {
namespace {

// Samples of random places: their neighbours in the file are not wanted, so larger gaps would only
// be more to read.
constexpr std::uint64_t kLargestRandomGap = 4096;
// Leaves of about a million records that have pages of their own.
constexpr std::uint64_t kKeptBytes = std::uint64_t{32} << 20;

OrderKind kind_of(OrderName name) {
  switch (name) {
    case OrderName::grouped:
      return OrderKind::grouped;
    case OrderName::in_memory:
      return OrderKind::in_memory;
    case OrderName::listed:
      return OrderKind::listed;
    default:
      return OrderKind::shuffled;
  }
}

/// The most samples that a rank loads for one buffer.
std::uint64_t most_samples_of(const OrderOptions& order) {
  const std::uint64_t share = order.batch / static_cast<std::uint64_t>(order.ranks) + 1;
  std::uint64_t most = share * order.window;  // loaded one by one
  if (order.kind == OrderKind::grouped) most = std::max(most, order.group);
  for (std::size_t i = 1; order.bounds && i < order.bounds->size(); ++i) {
    most = std::max(most, (*order.bounds)[i] - (*order.bounds)[i - 1]);
  }
  if (order.kind == OrderKind::in_memory) {
    most = std::max(most, samples_in_memory(order));
  }
  return most;
}

}  // namespace

void DrawPipeline::make_order() {
  read_list();
  OrderOptions order;
  collectively(*comm_, [&] {
    order = order_options();
    order.validate();
  });
  identity_of_order_ = order.identity();
  require_agreement(*comm_, identity_of_order_, "the order");
  collectively(*comm_, [&] {
    require_same_order();
    most_samples_ = most_samples_of(order);
    epochs_.emplace(order, limits());
    feed_ = std::make_shared<DrawFeed>(*epochs_, comm_->rank(), most_samples_);
  });
  if (order.kind == OrderKind::shuffled || order.kind == OrderKind::listed) {
    options_.gap_bytes = std::min(options_.gap_bytes, kLargestRandomGap);
    keep_bytes_ = kKeptBytes;
  }
}

// Other nodes may not see the file.
void DrawPipeline::read_list() {
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
SharedNumbers DrawPipeline::bounds() const {
  const bool by_file =
      options_.order == OrderName::grouped && options_.group == 0 && !facts_.files.empty();
  return by_file ? std::make_shared<const std::vector<std::uint64_t>>(facts_.files) : nullptr;
}

OrderOptions DrawPipeline::order_options() const {
  return {.kind = kind_of(options_.order),
          .entries = facts_.entries,
          .ranks = comm_->size(),
          .batch = options_.batch,
          .seed = options_.seed,
          .end = options_.end,
          .group = options_.group,
          .bounds = bounds(),
          .keep = options_.keep,
          .ratio = options_.ratio,
          .list = options_.ids,
          .reuse = options_.reuse,
          .reuse_scope = options_.reuse_scope,
          .ranks_per_node = node_->size(),
          .window = options_.window};
}

RunLimits DrawPipeline::limits() const {
  RunLimits limits{.start = {.epoch = options_.first_epoch, .done = options_.done}};
  if (options_.iterations > 0) limits.iterations = options_.iterations - options_.first_iteration;
  if (options_.epochs > 0) limits.epochs = options_.epochs;
  return limits;
}

void DrawPipeline::require_same_order() const {
  if (options_.order_identity.empty() || options_.order_identity == identity_of_order_) return;
  throw Error(ErrorKind::usage,
              fmt::format("the run to resume had the order {}, this one has {}",
                          options_.order_identity, identity_of_order_),
              "give the same options of the order");
}

StageShape DrawPipeline::stage_shape() const {
  return {.ranks = 1,
          .roots = 1,
          .buffers = options_.buffers,
          .coalesce = 1,
          .entries = most_samples_,
          .data_bytes = buffer_budget()};
}

bool DrawPipeline::more() {
  while (!epoch_ || step_ == epoch_->end) {
    auto next = epochs_->next();
    if (comm_->rank() == 0) figures_.dropped = epochs_->dropped();
    if (!next) return false;
    epoch_ = std::move(next);
    step_ = epoch_->begin;
  }
  return true;
}

/// The number of the buffer that serves `draw`, `from` or a later one.
std::uint64_t DrawPipeline::buffer_of(std::uint64_t draw, std::uint64_t from) const {
  for (std::uint64_t number = from;; ++number) {
    const auto buffer = feed_->at(number);
    if (buffer && buffer->serves(epoch_->order.epoch(), draw)) return number;
    if (buffer) continue;
    throw Error(ErrorKind::communication, fmt::format("no buffer holds draw {}", draw),
                "this is a fault of Forebay: please report it");
  }
}

void DrawPipeline::require_free_buffers() const {
  if (held_.empty()) return;
  if (needed_buffers() > held_.front().from + static_cast<std::uint64_t>(options_.buffers)) {
    refuse_held_buffers();
  }
}

/// Without samples nothing is needed, that is, nothing but what was drawn from already.
std::uint64_t DrawPipeline::needed_buffers() const {
  const Share share = epoch_->order.share(comm_->rank(), step_);
  if (share.count == 0) return number_;
  return buffer_of(share.first + share.count - 1, number_) + 1;
}

Delivery DrawPipeline::take() {
  const EpochOrder& order = epoch_->order;
  const Share share = order.share(comm_->rank(), step_);
  const std::uint64_t end = share.first + share.count;
  Delivery delivery{.samples = {}, .epoch = order.epoch(), .from = number_, .copies = {}};
  delivery.samples.reserve(share.count);
  for (std::uint64_t draw = share.first; draw < end;) {
    const std::uint64_t number = buffer_of(draw, number_);
    begin_buffer(number, delivery);
    const auto buffer = feed_->at(number);
    const std::uint64_t buffer_end = buffer->first + buffer->count;
    for (; draw < std::min(end, buffer_end); ++draw) {
      delivery.samples.push_back(sample_at(number, draw));
      delivery.samples.back().position = draw - share.first;
    }
    // At the end of an epoch nothing is drawn any more from what is left.
    const bool used_up = draw == buffer_end || (draw == end && step_ + 1 == epoch_->end);
    number_ = used_up ? number + 1 : number;
  }
  ++step_;
  return delivery;
}

/// Waits for buffer `number`, after letting go of what would keep it from being loaded.
void DrawPipeline::begin_buffer(std::uint64_t number, Delivery& delivery) {
  if (delivery.samples.empty()) delivery.from = number;
  if (number >= delivery.from + static_cast<std::uint64_t>(options_.buffers)) {
    copy_out(delivery);
    delivery.from = number;
  }
  const std::uint64_t from = held_.empty() ? delivery.from : held_.front().from;
  stage_->release(local_rank_, from);
  feed_->forget(from);
  wait_for_data(number);
}

void DrawPipeline::copy_out(Delivery& delivery) const {
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

Sample DrawPipeline::sample_at(std::uint64_t number, std::uint64_t draw) const {
  const EpochOrder& order = epoch_->order;
  const Draw drawn = order.draw(comm_->rank(), draw);
  const Place place = order.place(comm_->rank(), draw);
  const StageEntry& entry = checked_entry(number, place.slot, drawn.sample);
  return {.id = drawn.sample,
          .global = order.epoch() * order.size() + drawn.position,
          .epoch = order.epoch(),
          .position = 0,
          .run_seed = options_.seed,
          .key = stage_->key(entry),
          .value = stage_->value(entry),
          .repeat = drawn.repeat};
}

std::uint64_t DrawPipeline::epochs_done() const {
  if (!epoch_) return options_.first_epoch;
  return epoch_->order.epoch() + (step_ == epoch_->order.steps() ? 1 : 0);
}

std::string DrawPipeline::state() const {
  OrderProgress now{.epoch = options_.first_epoch, .done = options_.done};
  if (epoch_) {
    now = {.epoch = epoch_->order.epoch(), .done = epoch_->before};
    if (step_ == epoch_->order.steps()) {
      now = {.epoch = now.epoch + 1, .done = {}};
    } else if (step_ > 0) {
      now.done.push_back({.ranks = comm_->size(), .batch = options_.batch, .iterations = step_});
    }
  }
  return write_state({.order = options_.order,
                      .fingerprint = identity_,
                      .entries = facts_.entries,
                      .identity = identity_of_order_,
                      .epoch = now.epoch,
                      .iterations = iteration_,
                      .segments = now.done});
}

}  // namespace forebay
