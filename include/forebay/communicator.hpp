// The ranks that load and train together, behind one thin interface.
//
// Four implementations: MPI (forebay/mpi_session.hpp; forebay/mpi.hpp for the caller's own
// communicators), ranks that are connected without MPI (forebay/connect.hpp), one process alone
// (self_communicator), and ranks as threads of one process (run_ranks, for tests and for trying
// things out).
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

/// Asked now and then by a wait, which ends when it returns true. Empty: never.
using GiveUp = std::function<bool()>;

/// One number that belongs to rank 0 and that any rank adds to. Made by share_counter().
/// Thread-safe. Destruction ends this rank's part and may take a second, for ranks that do so at
/// different times. Once rank 0 has ended its part, the others may find the number gone.
class SharedCounter {
 public:
  virtual ~SharedCounter() = default;
  SharedCounter() = default;
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;

  /// Adds, and returns the number before. Empty when `give_up` said so (the addition is made all
  /// the same) or the number is gone. Throws communication when rank 0 does not answer within the
  /// communicator's timeout.
  virtual std::optional<std::uint64_t> fetch_add(std::uint64_t n, const GiveUp& give_up) = 0;
  /// Adds without looking at the result. Never waits for long.
  virtual void add(std::uint64_t n) = 0;
  /// Answers what others have asked of this rank; tells whether there was something. Where
  /// needs_serving(), a thread of rank 0 has to call it again and again for the others to go on.
  virtual bool serve() = 0;
  virtual bool needs_serving() const = 0;
  /// How the number is reached, and why so: for explain().
  virtual std::string describe() const = 0;

  std::optional<std::uint64_t> load(const GiveUp& give_up) { return fetch_add(0, give_up); }
};

/// Memory of every rank that all ranks read from: internal, for the exchange of samples.
class RemoteMemory;
/// A file that ranks read together: internal, for MPI-IO.
class CommonFile;
/// Collective operations that nobody waits for: internal, for the synchronization of gradients.
class NonblockingCollectives;

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
  /// A number that starts at 0. How it is reached is tried out here, which takes up to 0.2 s.
  virtual std::unique_ptr<SharedCounter> share_counter() = 0;
  /// `bytes` of memory of this rank (ranks may differ) that all ranks read from; `node` is this
  /// rank's part of the communicator, as split_by_node() gives it.
  virtual std::unique_ptr<RemoteMemory> expose(Communicator& node, std::size_t bytes,
                                               SharedMemoryKind kind) = 0;
  /// Opens a file for reading it together: through MPI-IO, where there is MPI. Throws io.
  virtual std::unique_ptr<CommonFile> open_together(const std::string& path) = 0;
  /// On a communicator of their own, which they keep.
  virtual std::unique_ptr<NonblockingCollectives> nonblocking() = 0;

  // Local. Messages outside the collective flow, for failure notices: delivery is not confirmed.
  virtual void send_notice(int to, std::span<const std::byte> message) = 0;
  virtual std::optional<std::vector<std::byte>> poll_notice() = 0;

  // Local. Messages outside the collective flow, between helper threads: reliable, and in order
  // between two ranks. Both are thread-safe, also beside the main thread where concurrent(). Two
  // protocols between the same ranks must not share a communicator: split one off for each, which
  // all of its ranks use for messages and end at about the same time (or it stays until MPI ends).
  /// To be called on every rank before the first message, or at all where only some ranks may come
  /// to send one: the end of the communicator is then a meeting of at most 0.5 s, in which messages
  /// that nobody has received are dropped. Without it they would reach whoever comes next.
  virtual void carry_messages() {}
  /// Copies `message` and returns at once. Throws usage above 1 GiB. More than some KB may move
  /// only while both sides call this object (or MPI) now and then.
  virtual void send(int to, std::span<const std::byte> message) = 0;
  /// The next message of rank `from`, if one has arrived whole. Never waits.
  virtual std::optional<std::vector<std::byte>> try_receive(int from) = 0;
  /// Throws communication, with its number, where a rank is known to have died without a word.
  /// Where nobody tells (MPI, threads), nothing. Thread-safe; cheap.
  virtual void check_ranks() {}
  /// Whether helper threads may call this object beside the main thread (MPI_THREAD_MULTIPLE).
  virtual bool concurrent() const = 0;

  /// How long a collective call waits for the other ranks; the default is 600 s.
  virtual void set_timeout(std::chrono::milliseconds timeout) = 0;
  virtual std::chrono::milliseconds timeout() const = 0;
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
/// Collective: this is how opening fails together. Where the others do not come, an own failure is
/// thrown; after one that says so already (communication), they are waited for 2 s at most.
void collectively(Communicator& comm, const std::function<void()>& step);

}  // namespace forebay
