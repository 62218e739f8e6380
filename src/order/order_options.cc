#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "core/mix.hpp"
#include "forebay/epoch_order.hpp"
#include "forebay/error.hpp"
#include "order/order_limits.hpp"
#include "order/order_table.hpp"

namespace forebay {
namespace {

void require_bounds(const OrderOptions& options) {
  const auto& bounds = *options.bounds;
  const bool sound = bounds.size() >= 2 && bounds.front() == 0 &&
                     bounds.back() == options.entries &&
                     std::ranges::adjacent_find(bounds, std::greater_equal<>{}) == bounds.end();
  require_usage(sound, fmt::format("the bounds of units do not cut {} samples", options.entries),
                "give the first sample of each unit, ascending from 0, and the number of samples "
                "behind the last; leave empty units out");
  require_usage(options.group == 0, "units have both a size and bounds", "give one of them");
}

void require_ids(const OrderOptions& options) {
  require_usage(options.ids != nullptr && !options.ids->empty(), "the list of samples is empty",
                "give the sample ids in the order in which they are wanted");
  const auto wrong = std::ranges::find_if(
      *options.ids, [&](std::uint64_t sample) { return sample >= options.entries; });
  if (wrong == options.ids->end()) return;
  throw Error(ErrorKind::usage,
              fmt::format("entry {} of the list is no sample: there are {}",
                          wrong - options.ids->begin(), options.entries),
              fmt::format("ids run from 0 to {}", options.entries - 1), {.sample = *wrong});
}

void require_reuse(const OrderOptions& options) {
  require_usage(options.reuse >= 1 && options.reuse <= kMostReuse,
                fmt::format("samples cannot be used {} times", options.reuse),
                fmt::format("give --reuse a number from 1 to {}", kMostReuse));
  const std::uint64_t samples = order_row(options.order).samples(options);
  require_usage(samples <= kMostDeliveries / options.reuse,
                fmt::format("{} samples used {} times are too many", samples, options.reuse),
                "lower --reuse");
  require_usage(options.ranks_per_node >= 0, "ranks of a node are a number of at least 0", "");
  require_usage(options.window >= 1 && options.window <= kMostWindow,
                fmt::format("a window of {} iterations makes no sense", options.window),
                fmt::format("give --window a number from 1 to {}", kMostWindow));
}

/// The fewest samples that a rank can come to have in an epoch of a grouped order.
std::uint64_t fewest_samples(const OrderOptions& options) {
  const UnitCut cut(options.entries, options.group, options.bounds);
  const std::uint64_t units = cut.units() / static_cast<std::uint64_t>(options.ranks);
  if (cut.even()) return (units - 1) * cut.size() + cut.samples(cut.units() - 1).count;
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t unit = 0; unit < cut.units(); ++unit) {
    sizes.push_back(cut.samples(unit).count);
  }
  std::ranges::sort(sizes);
  std::uint64_t samples = 0;
  for (std::uint64_t unit = 0; unit < units; ++unit) samples += sizes[unit];
  return samples;
}

// Told at once, not in the epoch in which one rank has only the smallest groups.
void require_a_full_batch(const OrderOptions& options) {
  const auto ranks = static_cast<std::uint64_t>(options.ranks);
  const OrderRow& row = order_row(options.order);
  if (row.rounds && !row.exchanges) {
    const std::uint64_t fewest = options.reuse * fewest_samples(options);
    const std::uint64_t share = (options.batch + ranks - 1) / ranks;
    return require_usage(
        fewest >= share,
        fmt::format("a rank may have {} samples in an epoch, and takes {} at a time", fewest,
                    share),
        "with --end drop, lower --batch or --group; or give --end pad, wrap or exact");
  }
  const std::uint64_t samples = options.reuse * row.samples(options);
  require_usage(
      samples >= options.batch,
      fmt::format("an epoch of {} samples does not fill one batch of {}", samples, options.batch),
      "with --end drop, lower --batch; or give --end pad, wrap or exact");
}

}  // namespace

void require_usage(bool holds, const std::string& happened, const std::string& remedy) {
  if (!holds) throw Error(ErrorKind::usage, happened, remedy);
}

void require_group(const OrderOptions& options) {
  require_usage(options.group <= options.entries,
                fmt::format("a group of {} is larger than the data set of {} samples",
                            options.group, options.entries),
                "lower --group");
}

void require_sharing(int ranks, std::uint64_t batch) {
  require_usage(ranks >= 1, "an order needs at least one rank", "");
  require_usage(ranks <= kMostRanks, fmt::format("{} ranks are too many", ranks),
                fmt::format("the limit is {}", kMostRanks));
  require_usage(batch >= static_cast<std::uint64_t>(ranks),
                fmt::format("a batch of {} cannot be shared by {} ranks", batch, ranks),
                "give --batch at least the number of ranks");
  require_usage(batch <= kLargestBatch, fmt::format("a batch of {} is too large", batch),
                fmt::format("the limit is {}", kLargestBatch));
}

void require_sharing_limits(const std::vector<Segment>& done) {
  require_usage(done.size() <= kMostSegments,
                fmt::format("an epoch resumed {} times is too much to follow", done.size()),
                fmt::format("the limit is {}: begin the epoch anew", kMostSegments));
  std::uint64_t ranks = 0;
  for (const Segment& segment : done) {
    require_sharing(segment.ranks, segment.batch);
    ranks += static_cast<std::uint64_t>(segment.ranks);
  }
  require_usage(ranks <= kMostRanksOfSegments,
                fmt::format("{} ranks in all have worked on this epoch, too many to follow", ranks),
                fmt::format("the limit is {}: begin the epoch anew", kMostRanksOfSegments));
}

void OrderOptions::validate() const {
  const OrderRow& row = order_row(order);
  require_usage(row.list != nullptr, fmt::format("the {} order has no epochs", row.name),
                fmt::format("use one of: {}", fmt::join(epoch_order_names(), ", ")));
  require_usage(entries >= 1, "the data set has no samples", "pack some, or name another data set");
  require_usage(entries <= kMostEntries,
                fmt::format("a data set of {} samples is too large", entries),
                fmt::format("the limit is {}", kMostEntries));
  require_sharing(ranks, batch);
  if (bounds) require_bounds(*this);
  if (row.takes_ids) require_ids(*this);
  require_reuse(*this);
  row.validate(*this);
  if (end == OrderEnd::drop) require_a_full_batch(*this);
}

std::string OrderOptions::identity() const {
  const OrderRow& row = order_row(order);
  std::string text = fmt::format("order={},entries={},seed={},end={}", row.name, entries, seed,
                                 to_string(order_end()));
  text += row.parameters(*this);
  if (reuse == 1) return text;
  text += fmt::format(",reuse={},scope={}", reuse, to_string(reuse_scope));
  if (reuse_scope == ReuseScope::node) text += fmt::format(",ranks_per_node={}", ranks_per_node);
  if (!row.rounds) text += fmt::format(",window={}", window);
  return text;
}

std::string text_of_numbers(const SharedNumbers& numbers) {
  std::uint64_t hash = 0;
  for (const std::uint64_t number : *numbers) hash = mix_key({hash, number});
  return fmt::format("{}:{:016x}", numbers->size(), hash);
}

std::string_view to_string(OrderEnd end) { return name_of(end, kOrderEnds); }

std::string_view to_string(ReuseScope scope) { return name_of(scope, kReuseScopes); }

}  // namespace forebay
