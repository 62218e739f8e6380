// An MPI window in RAII, and shared memory on top of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "forebay/mpi.hpp"

namespace forebay {

/// Owns a window that MPI allocated. Creating is collective, and so is freeing, which blocks inside
/// MPI until all ranks do it. So the ranks must be of one mind whether to free.
class MpiWindow {
 public:
  /// Memory that the ranks of `comm` (one node) share; all of it belongs to rank 0. Its users agree
  /// in that memory and then call free() or leak(); a window without either is leaked.
  static MpiWindow allocate_shared(MPI_Comm comm, std::size_t bytes);
  /// `bytes` a rank, the first `zeros` of them zero, that the others may access by one-sided
  /// communication at any time (passive target, all locked). The destructor agrees with the other
  /// ranks, by numbers in the memory of rank 0, and waits for them at most 1 s. Where they do not
  /// agree, the window stays until MPI_Finalize, where all ranks meet.
  /// Throws communication where MPI cannot make such a window.
  static MpiWindow allocate(MPI_Comm comm, std::size_t bytes, std::size_t zeros);
  /// The same over memory that exists: all of it but the first kHead bytes, aligned to 8. Where the
  /// window stays, so has that memory, until MPI_Finalize: see
  /// free_with_others().
  static MpiWindow over(MPI_Comm comm, std::span<std::byte> room);
  /// What the ranks agree in, at the front of windows that are open to all.
  static constexpr std::size_t kHead = 64;

  MpiWindow(MpiWindow&& other) noexcept;
  MpiWindow& operator=(MpiWindow&& other) noexcept;
  ~MpiWindow();

  MPI_Win handle() const { return window_; }
  /// Where byte `offset` of a rank's memory is, for MPI_Get and the like on windows open to all.
  static MPI_Aint displacement(std::uint64_t offset) {
    return static_cast<MPI_Aint>(kHead + offset);
  }
  std::span<std::byte> bytes() const { return bytes_; }

  /// Adds to the 64-bit number `offset` bytes into the memory of rank 0 and returns the number
  /// before; on windows of allocate(), thread-safe. MPI_Fetch_and_op could only be ended by a flush
  /// that blocks; MPI_Rget_accumulate does the same and can be waited for with a deadline.
  /// The addition is made also when the wait for it ends early, which throws communication past
  /// `limit` and after which MPI must not be finalized.
  std::uint64_t fetch_add(std::size_t offset, std::uint64_t n, std::chrono::milliseconds limit);

  /// Frees the window without waiting: for ranks that know that all others do the same.
  void free();
  /// Frees a window that is open to all if the other ranks do the same; tells whether MPI has kept
  /// nothing of it. What the destructor does.
  bool free_with_others();
  /// Leaves the window to MPI, until MPI_Finalize where allocate() has made it.
  void leak() { window_ = MPI_WIN_NULL; }

 private:
  MpiWindow(MPI_Comm comm, MPI_Win window, std::span<std::byte> bytes);

  void open_to_all(std::size_t zeros);
  bool all_will_free();
  std::uint64_t fetch_add_at(std::size_t place, std::uint64_t n, std::chrono::milliseconds limit);
  bool decide_to_free(bool wanted, std::chrono::steady_clock::time_point deadline);

  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  std::span<std::byte> bytes_;
  bool open_to_all_ = false;  ///< made by allocate() or over(), up to its end
  int at_finalize_ = MPI_KEYVAL_INVALID;
};

/// What `make` makes on all ranks, or nothing and the reason of the first one that has none.
/// Collective.
std::shared_ptr<MpiWindow> try_window(Communicator& comm, std::string& fault,
                                      const std::function<MpiWindow()>& make);

/// SharedMemory in an MPI-3 shared window. Collective over `comm`, whose handle is `handle`.
std::unique_ptr<SharedMemory> share_mpi(Communicator& comm, MPI_Comm handle, std::size_t bytes);

}  // namespace forebay
