#include "comm/mpi_window.hpp"

#include <chrono>
#include <cstdint>
#include <utility>

#include "comm/mpi_communicator.hpp"
#include "comm/mpi_error.hpp"
#include "comm/waiting.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

/// Whether all ranks of `comm` arrive here within 5 s.
bool all_arrive(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(comm, &request) != MPI_SUCCESS) return false;
  const WaitPolicy policy{.timeout = std::chrono::seconds(5), .interrupt = {}};
  Waiting waiting(policy, "the other ranks");
  try {
    for (;;) {
      int done = 0;
      if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
      if (done != 0) return true;
      waiting.step();
    }
  } catch (const Error&) {
    set_mpi_gave_up();
    return false;
  }
}

constexpr std::size_t kAlignment = 64;  // a cache line

/// MPI promises no alignment: Open MPI's windows begin 8 bytes into a cache line. Windows are
/// mapped by whole pages, so the part left out at the front is the same in every process.
std::span<std::byte> aligned_part(std::span<std::byte> bytes, std::size_t size) {
  const auto misplaced = reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment;
  return bytes.subspan((kAlignment - misplaced) % kAlignment, size);
}

class WindowMemory final : public SharedMemory {
 public:
  WindowMemory(MpiWindow window, std::size_t size)
      : window_(std::move(window)), bytes_(aligned_part(window_.bytes(), size)) {}
  std::span<std::byte> bytes() const override { return bytes_; }
  void reserve(std::size_t, std::size_t) override {}  // MPI has allocated it

 private:
  MpiWindow window_;
  std::span<std::byte> bytes_;
};

}  // namespace

MpiWindow::MpiWindow(MPI_Comm comm, MPI_Win window, std::span<std::byte> bytes)
    : comm_(comm), window_(window), bytes_(bytes) {}

MpiWindow::MpiWindow(MpiWindow&& other) noexcept
    : comm_(other.comm_),
      window_(std::exchange(other.window_, MPI_WIN_NULL)),
      bytes_(other.bytes_) {}

MpiWindow& MpiWindow::operator=(MpiWindow&& other) noexcept {
  std::swap(comm_, other.comm_);
  std::swap(window_, other.window_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MpiWindow::~MpiWindow() {
  int finalized = 0;
  if (window_ == MPI_WIN_NULL) return;
  if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0) return;
  if (all_arrive(comm_)) MPI_Win_free(&window_);
}

MpiWindow MpiWindow::allocate_shared(MPI_Comm comm, std::size_t bytes) {
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  const auto mine = static_cast<MPI_Aint>(rank == 0 ? bytes : 0);
  void* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  check_mpi(
      MPI_Win_allocate_shared(mine, 1, MPI_INFO_NULL, comm, static_cast<void*>(&base), &window),
      "MPI_Win_allocate_shared");
  MPI_Aint size = 0;
  int unit = 0;
  check_mpi(MPI_Win_shared_query(window, 0, &size, &unit, static_cast<void*>(&base)),
            "MPI_Win_shared_query");
  return {comm, window, {static_cast<std::byte*>(base), static_cast<std::size_t>(size)}};
}

MpiWindow MpiWindow::allocate(MPI_Comm comm, std::size_t bytes) {
  void* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  check_mpi(MPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, comm,
                             static_cast<void*>(&base), &window),
            "MPI_Win_allocate");
  return {comm, window, {static_cast<std::byte*>(base), bytes}};
}

std::unique_ptr<SharedMemory> share_mpi(MPI_Comm comm, std::size_t bytes) {
  return std::make_unique<WindowMemory>(MpiWindow::allocate_shared(comm, bytes + kAlignment),
                                        bytes);
}

}  // namespace forebay
