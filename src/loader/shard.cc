#include "loader/shard.hpp"

#include <fmt/format.h>

#include "core/number_text.hpp"
#include "forebay/error.hpp"
#include "order/order_limits.hpp"
#include "order/order_table.hpp"

namespace forebay {

std::string_view what_exchanges(const LoaderOptions& options) {
  if (options.hold == Hold::memory) return "hold memory";
  if (order_row(options.order).exchanges) return "order in_memory";
  const bool reused = options.reuse > 1 && options.reuse_scope != ReuseScope::process;
  return reused ? "reuse across ranks" : "";
}

bool holds_all(const LoaderOptions& options) {
  return options.hold == Hold::memory || (order_row(options.order).exchanges && options.ratio == 1);
}

Shard parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is no value of option shard", text),
                "give K/N: part K, from 0, of N, for example 2/4");
  }
  const std::uint64_t count = parse_count(text.substr(slash + 1), "shard", 1, kMostRanks);
  const std::uint64_t index = parse_count(text.substr(0, slash), "shard", 0, count - 1);
  return {.index = static_cast<int>(index), .count = static_cast<int>(count)};
}

std::string to_string(const Shard& shard) { return fmt::format("{}/{}", shard.index, shard.count); }

void require_fitting_shard(const LoaderOptions& options, int ranks) {
  const Shard& shard = options.shard;
  require_usage(shard.count >= 1 && shard.index >= 0 && shard.index < shard.count,
                fmt::format("there is no shard {}", to_string(shard)),
                "give K/N with K from 0 to N - 1");
  require_usage(ranks <= kMostRanks / shard.count,
                fmt::format("{} shards of {} ranks are too many", shard.count, ranks),
                fmt::format("the limit is {} ranks in all", kMostRanks));
  const std::string_view what = what_exchanges(options);
  if (shard.count == 1 || what.empty()) return;
  throw Error(ErrorKind::usage,
              fmt::format("with {}, ranks take samples out of each other's memory, and shards are "
                          "not connected",
                          what),
              "run all ranks under MPI, without --shard; or choose another order");
}

}  // namespace forebay
