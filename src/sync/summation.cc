#include "sync/summation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/nonblocking.hpp"
#include "comm/values.hpp"
#include "forebay/error.hpp"
#include "sync/accelerator.hpp"

namespace forebay {
namespace {

struct Nodes {
  bool several = false;
  std::size_t smallest = 1;  ///< ranks
  std::size_t largest = 1;
};

Nodes nodes_of(Communicator& comm, Communicator& node) {
  const auto sizes = gather_all(comm, static_cast<std::size_t>(node.size()));
  return {.several = std::ranges::min(sizes) < static_cast<std::size_t>(comm.size()),
          .smallest = std::ranges::min(sizes),
          .largest = std::ranges::max(sizes)};
}

std::unique_ptr<Summation> flat_sum(Communicator& comm, SyncAlgorithm algorithm, WireFormat wire) {
  auto collectives = comm.nonblocking();
  return over_wire(algorithm == SyncAlgorithm::mpi ? mpi_sum(std::move(collectives))
                                                   : direct_sum(std::move(collectives)),
                   wire);
}

void require_possible(const SummationOptions& options) {
  const bool nccl = options.algorithm == SyncAlgorithm::nccl;
  if (options.deterministic && (nccl || options.algorithm == SyncAlgorithm::mpi)) {
    throw Error(ErrorKind::usage,
                fmt::format("the sums of {} may differ from run to run", nccl ? "NCCL" : "MPI"),
                "choose the algorithm direct or two_level, or give up deterministic");
  }
  if (nccl && options.wire != WireFormat::as_is) {
    throw Error(ErrorKind::usage, "NCCL moves numbers as they are",
                "leave the wire format as_is, or make tensors of 16 bits");
  }
  if (options.lanes == 0 || options.largest == 0) {
    throw Error(ErrorKind::usage, "sums need at least one lane and some memory", "");
  }
}

[[noreturn]] void refuse_device_memory() {
  throw Error(ErrorKind::usage, "these sums know no memory of devices",
              "choose the algorithm nccl, or give memory of the host");
}

}  // namespace

void Summation::put(std::size_t, std::span<const std::byte>, const DeviceMoment&) {
  refuse_device_memory();
}

void Summation::take(std::size_t, std::span<std::byte>) { refuse_device_memory(); }

Summations::Summations(Communicator& comm, const SummationOptions& options) : options_(options) {
  require_possible(options_);
  const auto node = comm.split_by_node();
  const Nodes nodes = nodes_of(comm, *node);
  const bool automatic = options_.algorithm == SyncAlgorithm::automatic;
  if (automatic) {
    options_.algorithm = nodes.largest > 1 ? SyncAlgorithm::two_level : SyncAlgorithm::direct;
  }
  if (options_.algorithm == SyncAlgorithm::two_level) {
    make_two_level_lanes(comm, *node);
  } else if (options_.algorithm == SyncAlgorithm::nccl) {
    make_device_lanes(comm);
  } else {
    make_flat_lanes(comm);
  }
  if (!explanation_.empty()) return;
  explanation_ = fmt::format("sums by {}{}", to_string(options_.algorithm),
                             !automatic          ? ""
                             : nodes.largest > 1 ? ", since ranks share a node"
                                                 : ", one rank a node");
}

void Summations::make_flat_lanes(Communicator& comm) {
  for (unsigned lane = 0; lane < options_.lanes; ++lane) {
    lanes_.push_back(flat_sum(comm, options_.algorithm, options_.wire));
  }
}

void Summations::make_device_lanes(Communicator& comm) {
  if (!options_.accelerator) options_.accelerator = open_nccl(comm, options_.device);
  collectively(
      comm, [&] { lanes_ = device_sums(options_.accelerator, options_.lanes, options_.largest); });
  explanation_ = fmt::format("sums on {}", options_.accelerator->describe());
}

void Summations::make_two_level_lanes(Communicator& comm, Communicator& node) {
  const Nodes nodes = nodes_of(comm, node);
  std::shared_ptr<Communicator> column;
  if (nodes.several) column = comm.split(node.rank(), comm.rank());
  lanes_ = two_level_sums(node, options_.lanes, options_.largest, nodes.smallest, nodes.several,
                          [&] { return flat_sum(*column, SyncAlgorithm::direct, options_.wire); });
}

std::size_t Summations::wire_bytes(TensorType type, std::size_t bytes) const {
  return bytes / size_of(type) * size_of(wire_type(type, options_.wire));
}

}  // namespace forebay
