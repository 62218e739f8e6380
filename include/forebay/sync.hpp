// Gradient synchronization: tensors are summed over ranks in the background (paper 002, chapter 6).
//
//   framework threads:  allreduce("conv1", ...) -> handle     never blocks, any thread, any order
//   progress thread:    agree on an order -> fuse -> transfer -> hand out -> sleep
//   framework threads:  handle.wait()
//
// How ranks agree on the order of transfers is the strategy, a row of the table sync_ways():
//
//   negotiate   the baseline, as Horovod 0.16 - 0.28 works: a cycle every few milliseconds, in
//               which ranks compare what is ready (a bit vector of known tensors; a coordinator
//               for new ones) and wait for each other without sleeping         002 6.2.2
//   gs          the same, but all ranks sleep as long as the one that sleeps least    002 6.3.1
//   nbcs        the same, but ranks sleep while they wait for each other               002 6.3.2
//   topo        nothing is compared: the order follows from the graph of dependencies, or from
//               what the first step has shown; the thread sleeps until a tensor comes  002 6.3.4
//
// Every component on its own cores (scp, 002 6.3.3) is a matter of placement and goes with any. The
// table has further ways, which sum by no engine: `blocking`, and `servers`
// (forebay/parameter_server.hpp).
//
// Results do not depend on the strategy, but for the last bits of floating point sums, which depend
// on how tensors are fused; `deterministic` sums every element in the order of ranks.
//
// Errors are collective: ranks that name one tensor with different types, shapes or operations all
// get the same error from its handles, and go on; a rank that fails or dies fails all handles of
// all ranks, with the first rank's message.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/graph.hpp"
#include "forebay/tensor.hpp"
#include "forebay/trace.hpp"

namespace forebay {

class Agreement;
struct AgreementContext;

/// A way to sum gradients: a row of the table from which commands, Python, the trainer and the
/// emulation of trainings take names, help, and what to make. See forebay/sync_agreement.hpp for
/// how to add one.
struct SyncWay {
  std::string name;
  std::string help;  ///< a few words that go on after "NAME: "
  /// Makes what ranks agree by in a SyncEngine; collective. Empty: no engine can sum so.
  std::function<std::unique_ptr<Agreement>(const AgreementContext&)> agree = {};
  bool takes_graph = false;  ///< SyncEngine::use_graph() tells it the order of transfers
  unsigned lanes = 1;        ///< transfers that are summed at the same time
  bool has_servers = false;  ///< servers update the parameters; nothing is summed over all ranks
  bool own_cores = false;    ///< `scp`: every component has its own cores; no row has it
};

/// Forebay's own rows. A program may append some and hand the table on.
std::vector<SyncWay> sync_ways();
/// The row of `ways` with this name; after "scp-" with own_cores, and "scp" is "scp-negotiate".
/// Throws usage, listing the names there are.
SyncWay find_sync_way(std::string_view text, std::span<const SyncWay> ways);
SyncWay find_sync_way(std::string_view text);
/// What find_sync_way() reads.
std::string to_string(const SyncWay& way);
/// The name and the help of each, for the help of a command.
std::string describe(std::span<const SyncWay> ways);

/// What wide floats are while they move between ranks. In float16, 65520 and more are infinite.
enum class WireFormat : std::uint8_t { as_is, float16, bfloat16 };

/// How a fused buffer is summed. `automatic` takes two_level where several ranks share a node.
///   mpi         MPI_Iallreduce; numbers of 16 bits are rounded after every addition
///   direct      each rank sums one part of the buffer, in the order of ranks, and gives it to all
///   two_level   in memory that the ranks of a node share; between nodes, rank by rank
///   nccl        on CUDA devices, one of its own for each rank; where Forebay was built with NCCL
enum class SyncAlgorithm : std::uint8_t { automatic, mpi, direct, two_level, nccl };

struct SyncOptions {
  SyncWay strategy = find_sync_way("topo");
  std::chrono::microseconds cycle{5000};  ///< negotiate, gs, nbcs: the shortest cycle
  unsigned gs_every = 1;                  ///< gs: cycles between two agreements on the sleep
  /// The most of one transfer; 0: no fusion. Not given: 64 MiB; topo: see plan_transfers().
  std::optional<std::uint64_t> fusion_bytes = {};
  std::size_t cache_capacity = 1024;  ///< known tensors; 0: none
  WireFormat wire = WireFormat::as_is;
  SyncAlgorithm algorithm = SyncAlgorithm::automatic;
  bool deterministic = false;  ///< bit-identical over runs; `direct` or `two_level`
  /// nccl: CUDA's number of this rank's device; -1: by its rank in the node. Ranks may differ.
  int device = -1;
  /// A tensor that some ranks have and others do not is warned about, then fails all ranks.
  std::chrono::milliseconds stall_warning{60'000};
  std::chrono::milliseconds stall_limit{0};  ///< 0: never
  /// topo: a step whose tensors come further apart than this is taken for one that has changed, and
  /// its plan is left for a negotiation. Doubled each time, up to `stall_warning`.
  std::chrono::milliseconds plan_patience{1'000};
  /// Of the progress thread: see forebay/placement.hpp. Ranks may differ.
  std::string placement = "shared";
  Trace* trace = nullptr;  ///< outlives the engine
};

/// What one name stands for; must be equal on all ranks (allgather: but for the first extent).
struct TensorSpec {
  std::string name = {};
  TensorType type = TensorType::float32;
  std::vector<std::uint64_t> shape = {};  ///< empty: one number

  std::uint64_t elements() const;
  std::uint64_t bytes() const;
};

/// Says that the memory of a tensor is that of the engine's device (algorithm nccl).
struct OnDevice {
  /// The CUDA stream (cudaStream_t; null: the default stream) whose work up to now comes before the
  /// operation: that which writes `in`, and which still reads `out`.
  void* stream = nullptr;
};

/// Called once when an operation ends, in whichever thread ends it, just before its handle is done;
/// `good`: its result is there. Until it returns, nobody is told, so what it does to the memory of
/// the operation is part of the result. Must not throw, wait, or use the engine. Not called where
/// starting the operation throws.
using SyncEnd = std::function<void(bool good)>;

/// One started operation. Copies stand for the same one. Thread-safe.
class SyncHandle {
 public:
  struct State;

  SyncHandle() = default;
  explicit SyncHandle(std::shared_ptr<State> state);

  bool done() const;
  /// Returns when the result is there. Throws what the operation has failed with.
  void wait() const;
  /// As wait(), up to `limit`; tells whether it is done.
  bool wait_for(std::chrono::milliseconds limit) const;
  /// allgather: the parts of all ranks, by rank, and the first extent of their whole. After wait().
  std::span<const std::byte> gathered() const;
  std::uint64_t gathered_rows() const;

 private:
  std::shared_ptr<State> state_;
};

/// Of one rank since the engine was made.
struct SyncStatistics {
  std::uint64_t tensors = 0;     ///< handed out
  std::uint64_t transfers = 0;   ///< fused or not
  std::uint64_t bytes = 0;       ///< of tensors that were handed out
  std::uint64_t wire_bytes = 0;  ///< what this rank gave to transfers
  std::uint64_t largest_transfer = 0;
  std::uint64_t cycles = 0;        ///< negotiate, gs, nbcs
  std::uint64_t empty_cycles = 0;  ///< in which nothing was transferred
  std::uint64_t negotiations = 0;  ///< messages to agree on something: bit vectors, requests
  std::uint64_t cache_hits = 0;
  std::uint64_t cache_misses = 0;
  std::uint64_t plans = 0;      ///< topo: how often an order was worked out
  std::uint64_t fallbacks = 0;  ///< topo: steps that did not follow their plan
  std::uint64_t stalls = 0;     ///< reported
  double wait_seconds = 0;      ///< for other ranks or for tensors, with something to do
  double copy_seconds = 0;      ///< into fused buffers and out of them
  double transfer_seconds = 0;
  double skew_seconds = 0;  ///< between a tensor's first and last rank, where known
  /// How much later than asked for the thread woke up: < 0.1, < 0.3, < 1, < 3, < 10, >= 10 ms.
  std::uint64_t oversleep[6] = {};
  double thread_user_seconds = 0;  ///< of the progress thread
  double thread_system_seconds = 0;
  std::uint64_t thread_voluntary_switches = 0;
  std::uint64_t thread_involuntary_switches = 0;
};

/// Thread-safe but for close() and destruction. Operations on one name follow each other: a second
/// one that is started before the first is done fails at once, locally (usage).
class SyncEngine {
 public:
  /// Collective over `comm`, of which it takes parts of its own. Throws usage; unsupported where
  /// helper threads may not use MPI (MPI_THREAD_MULTIPLE).
  SyncEngine(const std::shared_ptr<Communicator>& comm, SyncOptions options);
  /// As close(), without its errors. While an exception unwinds the stack, the other ranks are not
  /// waited for: their engines fail.
  ~SyncEngine();
  SyncEngine(const SyncEngine&) = delete;
  SyncEngine& operator=(const SyncEngine&) = delete;

  // All return at once; memory must stay as it is (`in`) or untouched (`out`) until the handle is
  // done. `in` and `out` may be the same; their sizes must be those of `tensor`.

  SyncHandle allreduce(const TensorSpec& tensor, std::span<const std::byte> in,
                       std::span<std::byte> out, Reduction reduction = Reduction::sum,
                       SyncEnd end = {});
  /// Both in the memory of the device. When the handle is done, the result is there for all
  /// streams. Throws usage where the algorithm is not nccl.
  SyncHandle allreduce(const TensorSpec& tensor, std::span<const std::byte> in,
                       std::span<std::byte> out, Reduction reduction, OnDevice device);
  SyncHandle broadcast(const TensorSpec& tensor, std::span<std::byte> data, int root,
                       SyncEnd end = {});
  /// Ranks may differ in the first extent. See SyncHandle::gathered().
  SyncHandle allgather(const TensorSpec& tensor, std::span<const std::byte> in);
  SyncHandle barrier(const std::string& name);
  /// Says that this rank has no more to sum: until all ranks have said so, it adds nothing (zeros,
  /// for min and max their neutral elements) to what the others sum. The handle is done when all
  /// have joined; then everything may start anew.
  SyncHandle join();

  /// topo: one iteration ends here: all that the plan knows was enqueued. Not needed (a name that
  /// comes again ends the iteration too), but finds a missing tensor at once.
  void end_step();
  /// topo: the graph of which the following steps execute the part that leads to `fetches`.
  /// Collective; ranks must give equal graphs. Plans are kept by their fetches.
  void use_graph(const Graph& graph, std::span<const std::string> fetches);

  /// Ends the engine on all ranks: every handle, there and to come, fails with this.
  void fail(const Error& error);
  /// Whether a failure has ended the engine; throws it.
  void check() const;
  SyncStatistics statistics() const;
  /// One line: strategy, algorithm, placement, and why.
  std::string explain() const;
  /// Collective: waits until everything that was started is done. Then the engine takes no more.
  /// Where another rank has started what this one has not, and now never will, the engine fails on
  /// all ranks at once (communication), and this throws it as well.
  void close();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
  int ranks_;
};

}  // namespace forebay
