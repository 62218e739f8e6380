// What ranks as threads, and a process alone, have in the place of MPI's files and windows.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/common_file.hpp"
#include "comm/nonblocking.hpp"
#include "comm/remote_memory.hpp"
#include "forebay/communicator.hpp"
#include "forebay/storage.hpp"

namespace forebay {

/// Plain reads, between which the ranks wait for each other as MPI's might.
class ThreadFile final : public CommonFile {
 public:
  /// `comm` belongs to this object alone.
  ThreadFile(std::shared_ptr<Communicator> comm, const std::string& path)
      : comm_(std::move(comm)), file_(open_file(path, Engine::pread)) {}

  void read_all(std::span<const FilePiece> pieces) override;
  /// What is behind the end of the file is left as it is.
  std::uint64_t read(std::uint64_t offset, std::span<std::byte> into) override;
  std::string describe() const override { return "plain reads in the place of MPI-IO"; }

 private:
  std::shared_ptr<Communicator> comm_;
  std::shared_ptr<const File> file_;
};

/// All of it lies in this process, but other nodes' only a reader may see.
class ThreadRemoteMemory final : public RemoteMemory {
 public:
  using Part = std::shared_ptr<std::vector<std::byte>>;

  /// `parts`: of all ranks. `near`: which ranks are on this node.
  ThreadRemoteMemory(int rank, std::vector<Part> parts, std::vector<bool> near)
      : rank_(rank), parts_(std::move(parts)), near_(std::move(near)) {}

  std::span<std::byte> mine() const override { return *parts_[static_cast<std::size_t>(rank_)]; }
  std::span<const std::byte> direct(int rank) const override;
  std::uint64_t bytes(int rank) const override {
    return parts_[static_cast<std::size_t>(rank)]->size();
  }
  bool several_nodes() const override;
  void publish() override {}
  std::unique_ptr<RemoteReader> make_reader(Transport transport, std::string& why) override;
  std::string describe() const override { return "memory of this process"; }

 private:
  int rank_;
  std::vector<Part> parts_;
  std::vector<bool> near_;
};

// Non-blocking collectives among ranks that are threads of one process.
//
// Operations are numbered by the order in which a rank starts them. The n-th operation of all ranks
// is one slot, in which each shows its memory; the last one to come does the work for all, in the
// order of ranks, so that no one ever waits for anyone. A slot keeps the owners of all memory, and
// goes when the last rank has let go of its operation.

/// What the ranks of one NonblockingCollectives share. Thread-safe.
class ThreadOperations;

/// `ended` tells whether a rank has ended with an error: what it has not started never comes.
std::shared_ptr<ThreadOperations> make_thread_operations(int ranks, std::function<bool()> ended);

/// Rank `rank`'s part of them.
std::unique_ptr<NonblockingCollectives> thread_nonblocking(
    std::shared_ptr<ThreadOperations> operations, int rank);

}  // namespace forebay
