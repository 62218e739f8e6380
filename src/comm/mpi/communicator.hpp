// Communicator over MPI. Collective calls are started non-blocking and then waited for with
// MPI_Test and back-off, so that no wait burns a core or lasts for ever.
//
// A wait may end early, by the timeout or the interrupt, but MPI cannot take the operation back: it
// may read and write the operation's memory for as long as the process lives. So MPI only ever sees
// memory of this object, which is then never freed, and not the caller's.
//
// A library may give the number of a freed communicator to the next one, and then takes a message
// that was never received for one of the new communicator. So where messages were used, the ranks
// tell each other when they have sent their last one, and a rank that has not heard so from all
// others within half a second leaves the communicator to MPI.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/mpi/check.hpp"
#include "comm/waiting.hpp"
#include "forebay/mpi.hpp"

namespace forebay {

class RemoteReader;

// Messages that are sent and received in the background, on one tag of an MPI communicator.
//
// MPI works on buffers for as long as a transfer lasts, so they stay put in lists of this object.
// What is still moving when the object ends cannot be taken back: then its buffers are leaked, and
// settle() says so, for MPI must not be finalized after that.
//
// Receiving starts with a matched probe, and ends when a later call finds all bytes there. So a
// long message, which moves only while its sender calls MPI, never makes the receiver wait inside
// MPI.

/// Thread-safe where MPI_THREAD_MULTIPLE was granted. Local.
class MpiMailbox {
 public:
  /// `comm` outlives this object.
  MpiMailbox(MPI_Comm comm, int tag) : comm_(comm), tag_(tag) {}

  void send(int to, std::span<const std::byte> message);
  /// The next message of `from`; with MPI_ANY_SOURCE of anybody (then for all calls).
  std::optional<std::vector<std::byte>> receive(int from);
  /// Receives whatever has arrived and forgets it.
  void drain();
  /// Waits until nothing is moving any more, at most `limit`; tells whether it is so.
  bool settle(std::chrono::milliseconds limit);
  /// Leaves all buffers to MPI for as long as the process lives.
  void leak();

 private:
  struct Transfer {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<std::byte> message;
  };
  struct Transfers {
    std::list<Transfer> outgoing;
    std::map<int, Transfer> incoming;  ///< by the `from` that was asked for
  };

  static bool complete(Transfer& transfer);
  bool begin_to_receive(int from);
  bool all_complete();

  MPI_Comm comm_;
  int tag_;
  std::mutex mutex_;
  std::unique_ptr<Transfers> transfers_ = std::make_unique<Transfers>();
};

class MpiCommunicator final : public Communicator {
 public:
  /// Takes ownership of `comm`, which must not be a predefined communicator.
  MpiCommunicator(MPI_Comm comm, WaitPolicy policy);
  ~MpiCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override;
  void broadcast(std::span<std::byte> data, int root) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine, int root) override;
  void all_reduce_sum(std::span<float> values) override;
  std::shared_ptr<Communicator> split(int color, int key) override;
  std::shared_ptr<Communicator> split_by_node() override;
  std::unique_ptr<SharedMemory> share(std::size_t bytes, SharedMemoryKind kind) override;
  std::unique_ptr<SharedCounter> share_counter() override;
  std::unique_ptr<RemoteMemory> expose(Communicator& node, std::size_t bytes,
                                       SharedMemoryKind kind) override;
  std::unique_ptr<CommonFile> open_together(const std::string& path) override;
  std::unique_ptr<NonblockingCollectives> nonblocking() override;
  void send_notice(int to, std::span<const std::byte> message) override;
  std::optional<std::vector<std::byte>> poll_notice() override;
  void carry_messages() override { carries_messages_ = true; }
  void send(int to, std::span<const std::byte> message) override;
  std::optional<std::vector<std::byte>> try_receive(int from) override;
  bool concurrent() const override { return concurrent_; }
  void set_timeout(std::chrono::milliseconds timeout) override { policy_.timeout = timeout; }
  std::chrono::milliseconds timeout() const override { return policy_.timeout; }
  void set_interrupt(std::function<void()> interrupt) override {
    policy_.interrupt = std::move(interrupt);
  }

  MPI_Comm handle() const { return comm_; }

 private:
  void wait(MPI_Request request, const char* what);
  /// Of the same ranks, for one part of this one alone.
  std::shared_ptr<MpiCommunicator> own();
  std::vector<std::byte> receive_part(int from, std::size_t bytes);
  void send_part(int to, std::span<const std::byte> data);
  /// Memory for MPI to work on, valid until the next call.
  std::span<std::byte> working(std::size_t bytes);

  bool part();

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
  bool concurrent_ = false;
  WaitPolicy policy_;
  std::unique_ptr<std::vector<std::byte>> working_ = std::make_unique<std::vector<std::byte>>();
  std::optional<MpiMailbox> notices_;
  std::optional<MpiMailbox> messages_;
  std::optional<MpiMailbox> farewells_;
  bool carries_messages_ = false;
};

/// The number that ranks share over MPI: see counter.cc. Collective over `comm`, which it
/// keeps.
std::unique_ptr<SharedCounter> share_mpi_counter(std::shared_ptr<MpiCommunicator> comm);
/// Memory that all ranks may read: see remote_memory.cc. Collective over `comm`, which it
/// keeps.
std::unique_ptr<RemoteMemory> mpi_remote_memory(std::shared_ptr<MpiCommunicator> comm,
                                                Communicator& node, std::size_t bytes,
                                                SharedMemoryKind kind);
/// A reader for which the owners answer: see two_sided.cc. It keeps `comm`; `mine`, what others
/// may ask for, outlives it. `longest_message`: of an answer, in bytes; the same on all ranks.
std::unique_ptr<RemoteReader> mpi_two_sided_reader(std::shared_ptr<MpiCommunicator> comm,
                                                   std::span<const std::byte> mine,
                                                   std::size_t longest_message);
/// A file that is read by MPI-IO, in rounds: see file.cc. Collective over `comm`, which it
/// keeps.
std::unique_ptr<CommonFile> open_mpi_file(std::shared_ptr<MpiCommunicator> comm,
                                          const std::string& path,
                                          std::uint64_t round_bytes = std::uint64_t{512} << 20);
/// Operations that are asked for their end with MPI_Test; `comm` is theirs alone.
std::unique_ptr<NonblockingCollectives> mpi_nonblocking(std::shared_ptr<MpiCommunicator> comm);

/// Waits for `request`. Where the wait ends early MPI goes on with it: then mpi_gave_up().
/// `what` completes "waited 600 s for ...".
void wait_for(MPI_Request& request, const WaitPolicy& policy, std::string what);

/// Whether MPI was finalized. A helper thread of a loader that nobody has closed may still run
/// then.
bool mpi_is_over();

/// Whether this process has ended a wait for an MPI operation early (timeout or interrupt). Then
/// communicators are leaked and MPI must not be finalized: end the process or abort the job.
bool mpi_gave_up();
void set_mpi_gave_up();

}  // namespace forebay
