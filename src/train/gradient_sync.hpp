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
// `topo` does not wait for the first iteration to learn the order of transfers: the network's parts
// give a graph (see network_graph.hpp).
//
// Every rank gives all parts in every iteration, also one whose share of the batch is empty or that
// has failed: no rank can be left behind in the middle of an iteration. Sums do not depend on when
// parts come: elements are added in the order of ranks.
//
// All methods are for the thread that trains.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/sync.hpp"
#include "forebay/trace.hpp"
#include "train/network.hpp"

namespace forebay {

/// `scp` is negotiate, and `scp_topo` topo, with cores of their own for every component.
enum class GradientStrategy : std::uint8_t {
  automatic,  ///< topo; blocking for one rank, and where helper threads may not use MPI
  blocking,
  negotiate,
  gs,
  nbcs,
  scp,
  topo,
  scp_topo,
};

std::string_view to_string(GradientStrategy strategy);
/// Throws usage, listing the names there are.
GradientStrategy parse_gradient_strategy(std::string_view text);

/// Reads "none", "float16" or "bfloat16". Throws usage.
WireFormat parse_wire_format(std::string_view text);

struct GradientOptions {
  GradientStrategy strategy = GradientStrategy::blocking;
  /// Of one transfer. Empty: 64 MiB; for topo, whose buffers wait for all their parts, an eighth of
  /// the gradients (256 KiB to 64 MiB), so that the first are on their way early.
  std::optional<std::uint64_t> fusion_bytes;
  std::chrono::microseconds cycle{5000};  ///< see SyncOptions
  WireFormat wire = WireFormat::as_is;    ///< of gradients; not with blocking
  bool graph_given = true;           ///< topo: by the network; else the first iteration shows it
  std::string placement = "shared";  ///< see SyncOptions
  Trace* trace = nullptr;
};

/// Of one rank. A plain value, so that ranks can exchange it as bytes.
struct GradientStatistics {
  SyncStatistics engine;          ///< zeros with blocking
  std::uint64_t bytes = 0;        ///< of gradients
  std::uint64_t early_bytes = 0;  ///< whose sums were there when the backward pass ended
};

class GradientSync {
 public:
  virtual ~GradientSync() = default;
  GradientSync() = default;
  GradientSync(const GradientSync&) = delete;
  GradientSync& operator=(const GradientSync&) = delete;

  /// The gradient of a part is final in this iteration. Never waits. Local.
  virtual void ready(std::size_t part) = 0;
  /// Network::exchange() becomes its sum over ranks; also of the parts of which nothing was said.
  /// Collective. Throws what another rank has failed with.
  virtual void finish() = 0;
  /// Tells the other ranks, whose finish() then throws `error`. Local.
  virtual void fail(const Error& error) = 0;
  /// Collective. After it nothing is summed any more.
  virtual void close() = 0;

  virtual GradientStrategy strategy() const = 0;
  virtual GradientStatistics statistics() const = 0;
  /// One line.
  virtual std::string explain() const = 0;
};

/// The parameters of `network`, which must outlive the result, become those of rank 0. `interrupt`
/// is called now and then while it waits, and may throw to end that. Collective. Throws usage;
/// unsupported for strategies whose helper thread may not use MPI.
std::unique_ptr<GradientSync> make_gradient_sync(const std::shared_ptr<Communicator>& comm,
                                                 Network& network, const GradientOptions& options,
                                                 std::function<void()> interrupt);

/// The share of the bytes of gradients whose sums were there when the backward pass ended.
double overlap(std::span<const GradientStatistics> ranks);

}  // namespace forebay
