#include "sync/sync_options.hpp"

#include <fmt/format.h>

#include "comm/agreement.hpp"
#include "core/names.hpp"
#include "forebay/error.hpp"
#include "forebay/placement.hpp"

namespace forebay {
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
