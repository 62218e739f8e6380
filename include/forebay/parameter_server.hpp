// Parameter servers with proxies that know the machine (paper 002, 8.4.2): training in which no
// rank waits for all others in every step.
//
//   worker 0   worker 1    worker 2   worker 3      every rank: push(gradients), pull(parameters)
//        \      /               \      /
//      domain proxy           domain proxy          first rank of a NUMA node: adds up
//               \              /
//                 node proxy                        first rank of a node: adds up, cuts into shards
//               /              \         .
//         server 0            server 1              each has a shard of the parameters and updates
//         it
//
// What goes up is added up on its way, what comes down is handed on, so a node sends and receives
// each number once a step, however many ranks it has. Proxies and servers are no processes of their
// own: the progress threads of the ranks do their work beside computing.
//
// Clocks. A worker's clock is the number of its pushes; parameters have a version: all pushes of
// all workers with a lower clock are in them (later ones may be). With staleness n a worker at
// clock c waits for version c - n, so it is never more than n steps ahead of the slowest:
//
//   n = 0   synchronous: one update a step, with the sum over all workers
//   n > 0   asynchronous: a server updates its shard with what a node has pushed as soon as it
//   comes
//
// Workers may make different numbers of steps: flush() says that a worker has no more for now, the
// others go on without it, and when all have said so, all have the same parameters.
//
// Errors: a rank that fails (fail(), an exception that unwinds the stack past this object, a
// process that dies) ends the waiting of all ranks with its message. The object is then only good
// to be destroyed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"

namespace forebay {

/// Who adds up what the ranks of a node push. `numa`: a proxy for each NUMA node and one for the
/// node; `node`: the latter alone; `none`: every rank talks to every server.
enum class ProxyLevel : std::uint8_t { none, node, numa };
std::string_view to_string(ProxyLevel level);
/// Throws usage, listing the names there are.
ProxyLevel parse_proxy_level(std::string_view text);

struct ParameterServerOptions {
  /// Steps that a worker may be ahead of the slowest one.
  std::uint64_t staleness = 0;
  ProxyLevel proxies = ProxyLevel::numa;
  /// Shards of the parameters, each on a rank of its own: 0 is one a node, on its first rank; other
  /// numbers (up to that of ranks) are spread evenly over the ranks.
  int servers = 0;
  /// How long a worker waits for parameters before it gives up.
  std::chrono::milliseconds patience{600'000};
  /// Of the progress thread: see forebay/placement.hpp. Ranks may differ.
  std::string placement = "shared";
  /// Called ten times a second while a worker waits; may throw to end that.
  std::function<void()> interrupt = {};
};

/// One update of a shard.
struct ShardUpdate {
  std::size_t first = 0;             ///< of the shard, in all parameters
  std::span<float> parameters;       ///< of the shard; to be changed
  std::span<const float> gradients;  ///< of the shard: sums over those who have pushed
  std::span<const float> added;      ///< sums of what they have pushed beside gradients
  std::span<float> told;             ///< as many numbers that go to workers; kept between updates
  std::uint64_t clock = 0;           ///< updates of the same push have the same, from 0
};

/// Called by the progress thread of a server, one call at a time on a rank. May throw an Error,
/// which fails all ranks.
using UpdateRule = std::function<void(const ShardUpdate&)>;

/// Parameters [first, first + count), kept by `rank`.
struct ParameterShard {
  int rank = 0;
  std::size_t first = 0;
  std::size_t count = 0;
};

/// Of one rank since it was made.
struct ParameterServerStatistics {
  std::uint64_t pushes = 0;
  std::uint64_t waits = 0;     ///< calls that found no parameters that are new enough; near pushes
                               ///< with staleness 0, near zero when ranks drift less than it allows
  double wait_seconds = 0;     ///< in them, and in flushes
  std::uint64_t requests = 0;  ///< for parameters, where those that came by themselves were too old
  std::uint64_t updates = 0;   ///< of a shard, by this rank as a server
  std::uint64_t near_bytes = 0;  ///< sent to ranks of this node, this one included,
  std::uint64_t far_bytes = 0;   ///< and to those of others
};

/// One thread of each rank trains with it. Collective methods as said; the others are local.
class ParameterServer {
 public:
  /// `parameters` and `told` (what is pushed and told beside gradients; may be empty) begin as
  /// those of rank 0; their lengths and all options but placement and interrupt must be the same on
  /// all ranks. Collective over `comm`, of which it takes parts of its own. Throws usage;
  /// unsupported where helper threads may not use MPI, and above 2^28 numbers in a message.
  ParameterServer(const std::shared_ptr<Communicator>& comm, std::span<float> parameters,
                  std::span<float> told, UpdateRule rule, ParameterServerOptions options = {});
  /// As close(), without its errors. While an exception unwinds the stack, the other ranks are not
  /// waited for: they fail.
  ~ParameterServer();
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  /// Gives away the gradients of a step and what goes with them; `added` is as long as `told` was.
  /// Copies, never waits. Throws what a rank has failed with.
  void push(std::span<const float> gradients, std::span<const float> added);
  /// The newest parameters here, once they are new enough for the next step; returns their version.
  /// Throws what a rank has failed with, and communication when nothing has come within `patience`.
  std::uint64_t pull(std::span<float> parameters, std::span<float> told);
  /// This rank has no more steps for now. Collective: returns when all ranks have said so, with the
  /// same parameters on all, which contain all that was pushed. Then steps may follow again, with
  /// clocks that go on from the highest. No update rule runs until the next push of any rank.
  void flush(std::span<float> parameters, std::span<float> told);

  /// By server, the same on all ranks.
  std::span<const ParameterShard> shards() const;
  /// Pushes of this rank, and those of others where it had fewer before a flush.
  std::uint64_t clock() const;

  /// Ends the waiting of all ranks with this.
  void fail(const Error& error);
  /// Throws what a rank has failed with, if any did.
  void check() const;
  ParameterServerStatistics statistics() const;
  /// One line: who serves, who adds up, and how far ranks may drift.
  std::string explain() const;
  /// Collective, after a flush that nothing followed; otherwise it is one.
  void close();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace forebay
