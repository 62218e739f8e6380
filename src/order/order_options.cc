#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/mix.hpp"
#include "forebay/epoch_order.hpp"
#include "forebay/error.hpp"
#include "order/order_limits.hpp"
#include "order/order_names.hpp"
#include "order/round_plan.hpp"

namespace forebay {
namespace {

std::uint64_t hash_of(const SharedNumbers& numbers) {
  std::uint64_t hash = 0;
  for (const std::uint64_t number : *numbers) hash = mix_key({hash, number});
  return hash;
}

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

void require_grouped(const OrderOptions& options) {
  if (!options.bounds) {
    require_usage(options.group >= 1, "a grouped order needs the size of a group",
                  "give --group the number of samples that are read together");
    require_usage(options.group <= options.entries,
                  fmt::format("a group of {} is larger than the data set of {} samples",
                              options.group, options.entries),
                  "lower --group");
  }
  const UnitCut cut(options.entries, options.group, options.bounds);
  const auto ranks = static_cast<std::uint64_t>(options.ranks);
  require_usage(cut.units() >= ranks,
                fmt::format("{} groups cannot be shared by {} ranks", cut.units(), ranks),
                "make groups smaller with --group, or use fewer ranks");
  require_usage(cut.units() <= UINT64_MAX / 2 / ranks,
                fmt::format("{} groups on {} ranks are too many", cut.units(), ranks),
                "make groups larger with --group");
  if (options.reuse == 1 || options.reuse_scope == ReuseScope::process) return;
  require_usage(cut.even(), "reuse across ranks needs groups of one size",
                "give --group, or --reuse-scope process");
  require_usage(options.batch % ranks == 0,
                fmt::format("reuse across ranks needs equal shares, and {} ranks do not divide a "
                            "batch of {}",
                            ranks, options.batch),
                "give --batch a multiple of the ranks, or --reuse-scope process");
}

void require_in_memory(const OrderOptions& options) {
  require_usage(std::isfinite(options.ratio) && options.ratio > 0 && options.ratio <= 1,
                fmt::format("a memory ratio of {} makes no sense", options.ratio),
                "give the memory ratio a number above 0 and at most 1");
  if (!options.bounds) {
    require_usage(options.group <= options.entries,
                  fmt::format("a group of {} is larger than the data set of {} samples",
                              options.group, options.entries),
                  "lower --group");
  }
  const RoundPlan plan = plan_rounds(options);
  require_usage(
      plan.units_a_round <= UINT64_MAX / 2 / static_cast<std::uint64_t>(options.ranks),
      fmt::format("{} units a round on {} ranks are too many", plan.units_a_round, options.ranks),
      "make units larger with --group");
  require_usage(options.reuse == 1 || options.reuse_scope == ReuseScope::global,
                "an in_memory order recombines a round over all ranks",
                "give --reuse-scope global");
}

void require_listed(const OrderOptions& options) {
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
  const std::uint64_t samples =
      options.order == OrderName::listed ? options.ids->size() : options.entries;
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
  if (options.order == OrderName::grouped) {
    const std::uint64_t fewest = options.reuse * fewest_samples(options);
    const std::uint64_t share = (options.batch + ranks - 1) / ranks;
    return require_usage(
        fewest >= share,
        fmt::format("a rank may have {} samples in an epoch, and takes {} at a time", fewest,
                    share),
        "with --end drop, lower --batch or --group; or give --end pad, wrap or exact");
  }
  const std::uint64_t samples =
      options.reuse * (options.order == OrderName::listed ? options.ids->size() : options.entries);
  require_usage(
      samples >= options.batch,
      fmt::format("an epoch of {} samples does not fill one batch of {}", samples, options.batch),
      "with --end drop, lower --batch; or give --end pad, wrap or exact");
}

}  // namespace

void require_usage(bool holds, const std::string& happened, const std::string& remedy) {
  if (!holds) throw Error(ErrorKind::usage, happened, remedy);
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
  require_usage(order != OrderName::strided, "the strided order has no epochs",
                "use grouped, shuffled, in_memory or listed");
  require_usage(entries >= 1, "the data set has no samples", "pack some, or name another data set");
  require_usage(entries <= kMostEntries,
                fmt::format("a data set of {} samples is too large", entries),
                fmt::format("the limit is {}", kMostEntries));
  require_sharing(ranks, batch);
  if (bounds) require_bounds(*this);
  if (order == OrderName::listed) require_listed(*this);
  require_reuse(*this);
  if (order == OrderName::grouped) require_grouped(*this);
  if (order == OrderName::in_memory) require_in_memory(*this);
  if (order == OrderName::shuffled) {
    require_usage(keep <= entries,
                  fmt::format("{} neighbours of {} samples cannot be kept together", keep, entries),
                  "give --keep a number from 1 to the number of samples, or 0 for all");
  }
  if (end == OrderEnd::drop) require_a_full_batch(*this);
}

std::string OrderOptions::identity() const {
  std::string text = fmt::format("order={},entries={},seed={},end={}", to_string(order), entries,
                                 seed, to_string(order_end()));
  if (order == OrderName::shuffled) text += fmt::format(",keep={}", keep == 0 ? entries : keep);
  if (order == OrderName::listed) {
    text += fmt::format(",list={}:{:016x}", ids->size(), hash_of(ids));
  }
  if (order == OrderName::in_memory) text += fmt::format(",ratio={}", ratio);
  if (order == OrderName::in_memory || order == OrderName::grouped) {
    text += bounds ? fmt::format(",bounds={}:{:016x}", bounds->size(), hash_of(bounds))
                   : fmt::format(",group={}", group);
  }
  if (reuse == 1) return text;
  text += fmt::format(",reuse={},scope={}", reuse, to_string(reuse_scope));
  if (reuse_scope == ReuseScope::node) text += fmt::format(",ranks_per_node={}", ranks_per_node);
  if (order == OrderName::shuffled || order == OrderName::listed) {
    text += fmt::format(",window={}", window);
  }
  return text;
}

std::string_view to_string(OrderName order) { return name_of(order, kOrders); }

std::string_view to_string(OrderEnd end) { return name_of(end, kOrderEnds); }

std::string_view to_string(ReuseScope scope) { return name_of(scope, kReuseScopes); }

}  // namespace forebay
