// The ranks that load and train together, behind one thin interface.
//
// Three implementations: MPI (forebay/mpi.hpp), one process alone (self_communicator), and ranks
// as threads of one process (run_ranks, for tests and for trying things out).
//
// Waiting never burns a core: a blocked call sleeps in growing steps, gives up after the timeout
// with a communication error, and calls the interrupt (if set) now and then, so that a failure
// elsewhere ends the wait early. After such an error the communicator must not be used for further
// collective calls.
//
// Collective methods must be called by all ranks in the same order, from one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace forebay {

/// Memory that all ranks of one communicator see; its content is unspecified until written.
/// POSIX: destruction is local, and the memory goes with the last process that maps it, also after
/// a kill. MPI windows: the ranks meet at destruction (for at most 5 s, after which it is leaked).
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual std::span<std::byte> bytes() const = 0;
  /// Makes sure that [offset, offset + size) is backed by memory before it is touched.
  /// Local. Throws io with the needed and the free bytes; what was reserved before stays usable.
  virtual void reserve(std::size_t offset, std::size_t size) = 0;
};

/// Which shared memory to use: POSIX, or a window that MPI allocates (other implementations of
/// Communicator know only the first).
enum class SharedMemoryKind : std::uint8_t { posix, mpi };

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Collective.
  virtual void barrier() = 0;
  virtual void broadcast(std::span<std::byte> data, int root) = 0;
  /// `all` is size() times as long as `mine`, ordered by rank.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// Contributions may differ in length. The result, ordered by rank, is empty off `root`.
  virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine, int root) = 0;
  /// In-place sum over ranks. The same numbers on every rank; the same from run to run for one
  /// number of ranks.
  virtual void all_reduce_sum(std::span<float> values) = 0;
  virtual std::shared_ptr<Communicator> split(int color, int key) = 0;
  /// Ranks that share memory with this one. FOREBAY_RANKS_PER_NODE cuts a real node into virtual
  /// nodes of that many ranks (the last may be smaller).
  virtual std::shared_ptr<Communicator> split_by_node() = 0;
  /// Only on a communicator whose ranks share memory. Sparse: see SharedMemory::reserve.
  virtual std::unique_ptr<SharedMemory> share(std::size_t bytes, SharedMemoryKind kind) = 0;

  // Local. Messages outside the collective flow, for failure notices: delivery is not confirmed.
  virtual void send_notice(int to, std::span<const std::byte> message) = 0;
  virtual std::optional<std::vector<std::byte>> poll_notice() = 0;
  /// Whether helper threads may call this object beside the main thread (MPI_THREAD_MULTIPLE).
  virtual bool concurrent() const = 0;

  /// How long a collective call waits for the other ranks; the default is 600 s.
  virtual void set_timeout(std::chrono::milliseconds timeout) = 0;
  /// Called every 20 ms or so while a collective call waits; it may throw to end the wait.
  virtual void set_interrupt(std::function<void()> interrupt) = 0;
};

/// One process alone: no MPI involved.
std::shared_ptr<Communicator> self_communicator();

/// Runs `body` as `ranks` ranks on threads, `ranks_per_node` of them sharing a node (0: all).
/// Returns when all have ended, and rethrows the exception of the lowest rank that threw.
void run_ranks(int ranks, int ranks_per_node,
               const std::function<void(std::shared_ptr<Communicator>)>& body);

/// Text of rank `root` on every rank. Collective.
std::string broadcast_text(Communicator& comm, const std::string& text, int root);

/// Runs `step` on every rank; if any of them threw an Error, all throw that of the lowest rank.
/// Collective: this is how opening fails together.
void collectively(Communicator& comm, const std::function<void()>& step);

}  // namespace forebay
