#include "sync/summation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "comm/nonblocking.hpp"
#include "comm/values.hpp"
#include "forebay/error.hpp"
#include "sync/accelerator.hpp"
#include "sync/device_sum.hpp"
#include "sync/two_level_sum.hpp"

namespace forebay {
namespace {

// So that every slot can start with a huge page.
constexpr std::size_t kSlotAlignment = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

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

/// What the ranks of a node share, all lanes together.
struct Summations::Shared {
  Shared(Communicator& node, std::size_t lanes, std::size_t largest)
      : ranks(static_cast<std::size_t>(node.size())),
        slot_bytes(round_up(largest, kSlotAlignment)),
        first_slot(round_up(lanes * ranks * sizeof(NodeLane::Flags), kSlotAlignment)),
        memory(node.share(first_slot + lanes * ranks * slot_bytes, SharedMemoryKind::posix)) {
    collectively(node, [&] {
      if (node.rank() != 0) return;
      const std::size_t bytes = lanes * ranks * sizeof(NodeLane::Flags);
      memory->reserve(0, bytes);
      for (std::size_t i = 0; i < lanes * ranks; ++i) new (flags() + i) NodeLane::Flags{};
    });
  }

  NodeLane::Flags* flags() const {
    return reinterpret_cast<NodeLane::Flags*>(memory->bytes().data());
  }
  NodeLane lane(std::size_t index) const {
    return {.flags = {flags() + index * ranks, ranks},
            .memory = memory.get(),
            .numbers = first_slot + index * ranks * slot_bytes,
            .slot_bytes = slot_bytes};
  }

  std::size_t ranks;
  std::size_t slot_bytes;
  std::size_t first_slot;
  std::unique_ptr<SharedMemory> memory;
};

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

Summations::~Summations() = default;

void Summations::make_flat_lanes(Communicator& comm) {
  for (unsigned lane = 0; lane < options_.lanes; ++lane) {
    lanes_.push_back(flat_sum(comm, options_.algorithm, options_.wire));
  }
}

void Summations::make_device_lanes(Communicator& comm) {
  if (!options_.accelerator) options_.accelerator = open_nccl(comm, options_.device);
  const auto turns = std::make_shared<DeviceTurns>();
  collectively(comm, [&] {
    for (unsigned lane = 0; lane < options_.lanes; ++lane) {
      lanes_.push_back(std::make_unique<DeviceSum>(options_.accelerator, turns, options_.largest));
    }
  });
  explanation_ = fmt::format("sums on {}", options_.accelerator->describe());
}

void Summations::make_two_level_lanes(Communicator& comm, Communicator& node) {
  const Nodes nodes = nodes_of(comm, node);
  const auto rank = static_cast<std::size_t>(node.rank());
  std::shared_ptr<Communicator> column;
  if (nodes.several) column = comm.split(node.rank(), comm.rank());
  shared_ = std::make_unique<Shared>(node, options_.lanes, options_.largest);
  for (unsigned lane = 0; lane < options_.lanes; ++lane) {
    std::unique_ptr<Summation> over_nodes;
    if (column && rank < nodes.smallest) {
      over_nodes = flat_sum(*column, SyncAlgorithm::direct, options_.wire);
    }
    lanes_.push_back(std::make_unique<TwoLevelSum>(shared_->lane(lane), rank, nodes.smallest,
                                                   nodes.several, std::move(over_nodes)));
  }
}

std::size_t Summations::wire_bytes(TensorType type, std::size_t bytes) const {
  return bytes / size_of(type) * size_of(wire_type(type, options_.wire));
}

}  // namespace forebay
