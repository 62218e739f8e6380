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
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/mpi_communicator.hpp"
#include "comm/mpi_window.hpp"
#include "comm/remote_memory.hpp"

namespace forebay {

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

}  // namespace forebay
