// RemoteMemory over MPI.
//
// Where ranks share a node, their parts lie in one shared segment of it (Communicator::share: MPI's
// or POSIX), and a second window over this rank's part serves the other nodes. Where every node has
// one rank only, the memory is a window that MPI allocates for all: Open MPI reads those up to 5
// times faster than windows over memory that exists.
//
// A window may be refused, on one rank or all; then the memory is as good as before for its node,
// and for the two-sided transport.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "comm/mpi_communicator.hpp"
#include "comm/mpi_window.hpp"
#include "comm/remote_memory.hpp"

namespace forebay {

// RemoteReader without the owner's help: MPI_Get inside of one passive epoch.
//
//   batch of pieces --> MPI_Get ..., and MPI_Rget for some, and for the last one of each owner
//   requests of the MPI_Rgets done (MPI_Testsome, with back-off and a deadline) --> one flush
//
// MPI_Win_flush alone would burn a core for as long as an owner is outside MPI, and would never
// return if that owner is dead. Once an owner has let the last piece go, its earlier ones have
// hardly anything left to wait for.
//
// Before and after a batch its owners get a word: a notice of one byte. For as long as somebody
// reads from it, an owner's serve() says that there is work, so that its thread rests little:
// between nodes, data may move only while the owner is inside MPI too.

class MpiOneSidedReader final : public RemoteReader {
 public:
  /// `comm` belongs to this object alone.
  MpiOneSidedReader(std::shared_ptr<MpiCommunicator> comm, std::shared_ptr<MpiWindow> window);

  void start(std::span<const RemotePiece> pieces) override;
  void finish(const WaitPolicy& policy) override;
  bool serve() override;
  bool quiet() const override { return quiet_; }

 private:
  struct Batch {
    std::vector<MPI_Request> markers;
    std::vector<int> owners;
  };

  void begin_batch();
  void end_batch(const WaitPolicy& policy);
  void wait_for_markers(const WaitPolicy& policy);
  std::size_t batch_end() const;
  void tell_owners(std::byte word);
  void give_up();

  std::shared_ptr<MpiCommunicator> comm_;
  std::shared_ptr<MpiWindow> window_;
  std::vector<RemotePiece> pieces_;
  std::size_t begun_ = 0;  ///< pieces below it were asked for
  std::unique_ptr<Batch> batch_ = std::make_unique<Batch>();
  bool broken_ = false;
  bool quiet_ = true;
  int readers_ = 0;  ///< ranks that read from this one now; of the thread that serves
};

class MpiRemoteMemory final : public RemoteMemory {
 public:
  /// Collective over `comm`, which belongs to this object alone.
  MpiRemoteMemory(std::shared_ptr<MpiCommunicator> comm, Communicator& node, std::size_t bytes,
                  SharedMemoryKind kind);
  MpiRemoteMemory(const MpiRemoteMemory&) = delete;
  MpiRemoteMemory& operator=(const MpiRemoteMemory&) = delete;
  ~MpiRemoteMemory() override;

  std::span<std::byte> mine() const override { return mine_; }
  void reserve(std::size_t offset, std::size_t size) override;
  std::span<const std::byte> direct(int rank) const override;
  std::uint64_t bytes(int rank) const override { return sizes_[static_cast<std::size_t>(rank)]; }
  bool several_nodes() const override { return several_nodes_; }
  void publish() override;
  std::unique_ptr<RemoteReader> make_reader(Transport transport, std::string& why) override;
  std::string describe() const override;

 private:
  void share_on_node(Communicator& node, SharedMemoryKind kind);
  void allocate_for_all();
  void open_to_other_nodes();

  std::shared_ptr<MpiCommunicator> comm_;
  std::vector<std::uint64_t> sizes_;                ///< by rank
  std::vector<std::span<const std::byte>> direct_;  ///< by rank
  bool several_nodes_ = false;
  std::unique_ptr<SharedMemory> shared_;
  std::size_t begin_ = 0;      ///< of this rank's part of it
  std::span<std::byte> room_;  ///< of this rank, with the head of a window
  std::span<std::byte> mine_;
  std::string window_fault_;           ///< why there is none
  std::shared_ptr<MpiWindow> window_;  ///< goes before the memory that it may lie over
};

}  // namespace forebay
