// How gradients are summed over the ranks of a training run.
//
//   blocking    one all-reduce of Network::exchange() after the backward pass
//   the others  each part goes to the engine (forebay/sync.hpp) as soon as its gradient is final,
//               and is summed while the pass goes on; what stands behind the gradients follows as
//               one more tensor when the pass has ended (with a wire format, by an all-reduce of
//               its own: it must not be rounded)
//
//                 backward  | ip2 | ip1      | conv2 | conv1 |
//                 transfers       | ip2 | ip1        | conv2 | conv1, tail |
//                                                            ^-- exposed --^
//
//   servers     nothing is summed over all: parameter servers update shards of the parameters with
//               what nodes push, and ranks may be `staleness` iterations ahead of each other
//
// `topo` does not wait for the first iteration to learn the order of transfers: the network's parts
// give a graph (see graph_of).
//
// Every rank gives all parts in every iteration, also one whose share of the batch is empty or that
// has failed: no rank can be left behind in the middle of an iteration. Sums do not depend on when
// parts come: elements are added in the order of ranks.
//
// All methods are for the thread that trains.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/non_copyable.hpp"
#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/graph.hpp"
#include "forebay/parameter_server.hpp"
#include "forebay/sync.hpp"
#include "forebay/trace.hpp"
#include "train/network.hpp"
#include "train/solver.hpp"

namespace forebay {

/// The table of forebay/sync.hpp, and before it `auto`: topo; blocking for one rank, and where
/// helper threads may not use MPI.
std::vector<SyncWay> gradient_ways();

/// Reads "none", "float16" or "bfloat16". Throws usage.
WireFormat parse_wire_format(std::string_view text);

/// `strategy` is one of gradient_ways(); sums are in the order of ranks always. `wire` is of
/// gradients, and not with blocking. With no fusion_bytes, the buffers of topo, which wait for all
/// their parts, are an eighth of the gradients (256 KiB to 64 MiB), so that the first are on their
/// way early.
struct GradientOptions : SyncOptions {
  GradientOptions() {
    strategy = find_sync_way("blocking");
    deterministic = true;  // a run gives the same numbers however its transfers were timed
  }
  bool graph_given = true;  ///< topo: by the network; else the first iteration shows it
  // Of servers: see ParameterServerOptions.
  std::uint64_t staleness = 0;
  int servers = 0;
  ProxyLevel proxies = ProxyLevel::numa;
};

/// Of one rank. A plain value, so that ranks can exchange it as bytes.
struct GradientStatistics {
  SyncStatistics engine;              ///< zeros with blocking
  std::uint64_t bytes = 0;            ///< of gradients
  std::uint64_t early_bytes = 0;      ///< whose sums were there when the backward pass ended
  ParameterServerStatistics servers;  ///< zeros with all others
};

/// Iterations between two meetings, for those who update parameters themselves.
struct Stretch {
  std::uint64_t iteration = 0;                 ///< done before it
  double samples = 1;                          ///< of an iteration, over all ranks
  std::function<RunTime(std::uint64_t)> time;  ///< after so many iterations; of any thread
};

class GradientSync : private NonCopyable {
 public:
  virtual ~GradientSync() = default;

  /// Iterations follow. Collective where updates_parameters(); nothing otherwise.
  virtual void begin(const Stretch&) {}
  /// All ranks get the same parameters, statistics and state of the solver. Collective where
  /// updates_parameters(), and nothing otherwise, as all ranks have the same always.
  virtual void meet() {}
  /// Whether finish() gives new parameters, and no sums of gradients. What stands behind gradients
  /// is then summed over ranks only where all are in step.
  virtual bool updates_parameters() const { return false; }

  /// The gradient of a part is final in this iteration. Never waits. Local.
  virtual void ready(std::size_t part) = 0;
  /// Network::exchange() becomes its sum over ranks; also of the parts of which nothing was said.
  /// Collective. Throws what another rank has failed with.
  virtual void finish() = 0;
  /// Tells the other ranks, whose finish() then throws `error`. Local.
  virtual void fail(const Error& error) = 0;
  /// Collective. After it nothing is summed any more.
  virtual void close() = 0;

  virtual GradientStatistics statistics() const = 0;
  /// One line.
  virtual std::string explain() const = 0;
};

/// The parameters of `network`, which must outlive the result as `solver` must, become those of
/// rank 0. The solver is for those who update parameters themselves, and theirs alone then.
/// `interrupt` is called now and then while it waits, and may throw to end that. Collective. Throws
/// usage; unsupported for strategies whose helper thread may not use MPI. The strategy is resolved.
std::unique_ptr<GradientSync> make_gradient_sync(const std::shared_ptr<Communicator>& comm,
                                                 Network& network, Solver& solver,
                                                 const GradientOptions& options,
                                                 std::function<void()> interrupt);
/// Its part for servers: see server_sync.cc.
std::unique_ptr<GradientSync> make_server_sync(const std::shared_ptr<Communicator>& comm,
                                               Network& network, Solver& solver,
                                               const GradientOptions& options,
                                               std::function<void()> interrupt);

// The graph of one training iteration, from which `topo` works out the order of its transfers:
//
//   forward a -> forward b -> forward c
//                                 |
//   backward a <- backward b <- backward c        one of each for every part of the network
//       |             |             |
//      [a]           [b]           [c]            transfers, none of which needs another
//       |             |             |
//   update a      update b      update c          the fetches
//
// What is behind the gradients (Network::tail) is known when the backward pass has ended.

/// Statistics, loss and weight, behind the gradients.
inline constexpr const char* kTailName = "statistics, loss and weight";

/// The gradient of each part.
std::vector<TensorSpec> tensors_of(const Network& network);
/// Network::tail.
TensorSpec tail_of(Network& network);

/// `behind`: what is known when the backward pass has ended. The updates are fetched.
GraphFile graph_of(const Network& network, std::span<const TensorSpec> behind);

/// What `auto` stands for; others as they are.
SyncWay resolve(const SyncWay& way, const Communicator& comm);

/// The share of the bytes of gradients whose sums were there when the backward pass ended.
double overlap(std::span<const GradientStatistics> ranks);

}  // namespace forebay
