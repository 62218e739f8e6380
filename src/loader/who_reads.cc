#include "loader/who_reads.hpp"

#include "loader/shard.hpp"
#include "order/order_table.hpp"

namespace forebay {
namespace {

/// Whether the run goes on with units that other ranks have begun: what is left of many of them may
/// be wanted at once, and each is loaded whole.
bool takes_over_units(const Ranks& ranks, const LoaderOptions& options) {
  if (!order_row(options.order).rounds || options.done.empty()) return false;
  const Segment& last = options.done.back();
  return options.done.size() > 1 || last.ranks != ranks.order_ranks || last.batch != options.batch;
}

}  // namespace

ReadAlone who_reads(const Ranks& ranks, const LoaderOptions& options, bool local) {
  if (options.order == OrderName::strided) return ReadAlone::where_said;
  if (!what_exchanges(options).empty() || holds_all(options)) return ReadAlone::always;
  if (takes_over_units(ranks, options)) return ReadAlone::always;
  return local || ranks.world->size() == 1 ? ReadAlone::unless_roots : ReadAlone::where_said;
}

bool lie_apart(const Team& team, const LoaderOptions& options) {
  const bool in_a_row = options.order == OrderName::strided && team.all_roots() == 1;
  return options.hold == Hold::storage && !in_a_row;
}

}  // namespace forebay
