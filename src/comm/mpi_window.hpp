// An MPI window in RAII, and shared memory on top of it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "forebay/mpi.hpp"

namespace forebay {

/// Owns a window that MPI allocated. Creating and freeing are collective; the destructor waits for
/// the other ranks at most 5 s, and leaks the window rather than hang when one does not come.
class MpiWindow {
 public:
  /// Memory that the ranks of `comm` (one node) share; all of it belongs to rank 0.
  static MpiWindow allocate_shared(MPI_Comm comm, std::size_t bytes);
  /// `bytes` of memory a rank that the others may access by one-sided communication.
  static MpiWindow allocate(MPI_Comm comm, std::size_t bytes);

  MpiWindow(MpiWindow&& other) noexcept;
  MpiWindow& operator=(MpiWindow&& other) noexcept;
  ~MpiWindow();

  MPI_Win handle() const { return window_; }
  std::span<std::byte> bytes() const { return bytes_; }

  /// Frees the window without waiting: for ranks that know that all others do the same.
  void free();
  /// Leaves the window to MPI for as long as the process lives.
  void leak() { window_ = MPI_WIN_NULL; }

 private:
  MpiWindow(MPI_Comm comm, MPI_Win window, std::span<std::byte> bytes);

  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  std::span<std::byte> bytes_;
};

/// SharedMemory in an MPI-3 shared window. Collective over `comm`, whose handle is `handle`.
std::unique_ptr<SharedMemory> share_mpi(Communicator& comm, MPI_Comm handle, std::size_t bytes);

}  // namespace forebay
