// The table of ways to sum gradients: see SyncWay.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "forebay/sync_agreement.hpp"
#include "sync/negotiation.hpp"
#include "sync/topo.hpp"

namespace forebay {
namespace {

constexpr std::string_view kOwnCores = "scp";
constexpr std::string_view kWithoutAName = "negotiate";  // what `scp` alone goes with

template <CycleKind kind>
std::unique_ptr<Agreement> negotiation(const AgreementContext& context) {
  return std::make_unique<Negotiation>(context, kind);
}

std::unique_ptr<Agreement> topo(const AgreementContext& context) {
  return std::make_unique<Topo>(context);
}

}  // namespace

std::vector<SyncWay> sync_ways() {
  return {{.name = "blocking", .help = "one all-reduce after the backward pass"},
          {.name = "negotiate",
           .help = "during it; ranks compare what is ready cycle by cycle, as Horovod does",
           .agree = negotiation<CycleKind::plain>},
          {.name = "gs",
           .help = "negotiate, and all rest as long as the one that rests least",
           .agree = negotiation<CycleKind::gs>},
          {.name = "nbcs",
           .help = "negotiate, and ranks sleep while they wait for each other",
           .agree = negotiation<CycleKind::nbcs>},
          {.name = "topo",
           .help = "during it; in an order that the network's graph or the first step gives, with "
                   "nothing to compare",
           .agree = topo,
           .takes_graph = true,
           .lanes = 2},
          {.name = "servers",
           .help = "each server keeps and updates a part of the parameters",
           .has_servers = true}};
}

SyncWay find_sync_way(std::string_view text, std::span<const SyncWay> ways) {
  std::string_view name = text;
  const bool own_cores = text == kOwnCores || text.starts_with("scp-");
  if (own_cores) name = text == kOwnCores ? kWithoutAName : text.substr(kOwnCores.size() + 1);
  const auto found = std::ranges::find(ways, name, &SyncWay::name);
  if (found == ways.end()) {
    std::vector<std::string_view> names;
    for (const SyncWay& way : ways) names.emplace_back(way.name);
    throw Error(ErrorKind::usage, fmt::format("'{}' is no way to sum gradients", text),
                fmt::format("choose one of {}; with scp- before it for cores of its own; scp is "
                            "scp-{}",
                            fmt::join(names, ", "), kWithoutAName));
  }
  SyncWay way = *found;
  way.own_cores = own_cores;
  return way;
}

SyncWay find_sync_way(std::string_view text) { return find_sync_way(text, sync_ways()); }

std::string to_string(const SyncWay& way) {
  if (!way.own_cores) return way.name;
  return way.name == kWithoutAName ? std::string(kOwnCores)
                                   : fmt::format("{}-{}", kOwnCores, way.name);
}

std::string describe(std::span<const SyncWay> ways) {
  std::string text;
  for (const SyncWay& way : ways) text += fmt::format("{} ({}), ", way.name, way.help);
  return text +
         "with scp- before it, as in scp-topo, every component has cores of its own, and scp is "
         "scp-negotiate";
}

}  // namespace forebay
