// Communicator over MPI. Collective calls are started non-blocking and then waited for with
// MPI_Test and back-off, so that no wait burns a core or lasts for ever.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "comm/waiting.hpp"
#include "forebay/mpi.hpp"

namespace forebay {

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
  void send_notice(int to, std::span<const std::byte> message) override;
  std::optional<std::vector<std::byte>> poll_notice() override;
  bool concurrent() const override { return concurrent_; }
  void set_timeout(std::chrono::milliseconds timeout) override { policy_.timeout = timeout; }
  void set_interrupt(std::function<void()> interrupt) override {
    policy_.interrupt = std::move(interrupt);
  }

 private:
  struct Notice {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<std::byte> message;
  };

  void wait(MPI_Request request, const char* what);
  std::vector<std::byte> receive(int from, std::size_t bytes);

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
  bool concurrent_ = false;
  WaitPolicy policy_;
  std::mutex notices_mutex_;
  std::deque<Notice> notices_;  ///< being sent; the buffers must stay where they are
};

/// Whether this process has ended a wait for an MPI operation early (timeout or interrupt). Then
/// communicators are leaked and MPI must not be finalized: end the process or abort the job.
bool mpi_gave_up();
void set_mpi_gave_up();

}  // namespace forebay
