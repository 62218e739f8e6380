// The table of ways to sum gradients: see SyncWay.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "comm/values.hpp"
#include "core/names.hpp"
#include "forebay/error.hpp"
#include "forebay/placement.hpp"
#include "forebay/sync_agreement.hpp"
#include "sync/negotiation.hpp"
#include "sync/summation.hpp"

namespace forebay {
namespace {

constexpr std::string_view kOwnCores = "scp";
constexpr std::string_view kWithoutAName = "negotiate";  // what `scp` alone goes with

template <CycleKind kind>
std::unique_ptr<Agreement> negotiation(const AgreementContext& context) {
  return std::make_unique<Negotiation>(context, kind);
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
           .agree = agree_by_plans,
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

// Checks of SyncOptions, and their text form.

namespace {

constexpr Name<WireFormat> kWires[] = {
    {"as_is", WireFormat::as_is},
    {"float16", WireFormat::float16},
    {"bfloat16", WireFormat::bfloat16},
};
constexpr Name<SyncAlgorithm> kAlgorithms[] = {
    {"automatic", SyncAlgorithm::automatic}, {"mpi", SyncAlgorithm::mpi},
    {"direct", SyncAlgorithm::direct},       {"two_level", SyncAlgorithm::two_level},
    {"nccl", SyncAlgorithm::nccl},
};

void require(bool holds, const std::string& what, const std::string& remedy) {
  if (!holds) throw Error(ErrorKind::usage, "synchronization: " + what, remedy);
}

void check_values(const SyncOptions& options) {
  constexpr std::chrono::minutes kLongestCycle{1};
  require(options.strategy.agree != nullptr,
          fmt::format("'{}' is no way of an engine", options.strategy.name),
          "choose one that sums in the background, such as topo");
  require(options.cycle.count() >= 0 && options.cycle <= kLongestCycle,
          fmt::format("a cycle of {} us", options.cycle.count()), "choose 0 to 60,000,000");
  require(options.gs_every >= 1, "rests agreed every 0 cycles", "choose 1 or more");
  require(options.stall_warning.count() > 0, "a warning about stalls after 0 ms",
          "choose 1 ms or more");
  require(options.plan_patience.count() > 0, "no patience with the tensors of a plan",
          "steps may take a moment: give some milliseconds");
  require(options.stall_limit.count() >= 0, "a negative limit for stalls", "0 is none");
  const bool nccl = options.algorithm == SyncAlgorithm::nccl;
  require(
      !options.deterministic || (!nccl && options.algorithm != SyncAlgorithm::mpi),
      fmt::format("sums by {} differ in their last bits from run to run", nccl ? "NCCL" : "MPI"),
      "choose direct or two_level, or leave the choice to Forebay");
  require(!nccl || options.wire == WireFormat::as_is, "NCCL moves numbers as they are",
          "leave the wire format as_is, or make tensors of 16 bits");
  require(options.device >= -1, fmt::format("device {}", options.device),
          "choose 0 or more, or -1 for the rank's own in its node");
  require_placement_policy(options.placement);
}

/// What all ranks have to do in the same way.
std::string common_text(const SyncOptions& options) {
  const std::string fusion =
      options.fusion_bytes ? std::to_string(*options.fusion_bytes) : "as usual";
  return fmt::format(
      "strategy {}, rests agreed every {}, fusion {}, cache {}, wire {}, algorithm {}{}",
      options.strategy.name, options.gs_every, fusion, options.cache_capacity,
      to_string(options.wire), to_string(options.algorithm),
      options.deterministic ? ", deterministic" : "");
}

}  // namespace

std::string_view to_string(WireFormat wire) { return name_of(wire, kWires); }

std::string_view to_string(SyncAlgorithm algorithm) { return name_of(algorithm, kAlgorithms); }

void check_options(Communicator& comm, const SyncOptions& options) {
  collectively(comm, [&] {
    check_values(options);
    require(comm.concurrent() || comm.size() == 1, "helper threads may not use MPI here",
            "start MPI with MPI_THREAD_MULTIPLE");
  });
  require_agreement(comm, common_text(options), "the options of synchronization are");
}

}  // namespace forebay
