#include "comm/mpi_window.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <utility>

#include "comm/gate.hpp"
#include "comm/mpi_communicator.hpp"
#include "comm/mpi_error.hpp"
#include "comm/waiting.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::chrono::seconds kLongestFarewell{5};

/// Whether all ranks of `comm` arrive here within 5 s.
bool all_arrive(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(comm, &request) != MPI_SUCCESS) return false;
  const WaitPolicy policy{.timeout = kLongestFarewell, .interrupt = {}};
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

/// How the ranks that share a window agree, in that window, to free it or to leave it. One of them
/// may have stopped waiting when another comes: a barrier could tell them different things, and
/// freeing would then hang; whoever changes `verdict` first decides for all.
struct Farewell {
  enum Verdict : std::uint32_t { kOpen, kFree, kLeak };
  std::atomic<std::uint32_t> arrived;
  std::atomic<std::uint32_t> verdict;
  Gate decided;

  void decide(Verdict wanted) {
    std::uint32_t open = kOpen;
    verdict.compare_exchange_strong(open, wanted);
    decided.notify_all();
  }
};

/// The memory, and the farewell behind it.
class WindowMemory final : public SharedMemory {
 public:
  WindowMemory(MpiWindow window, std::size_t bytes, Communicator& comm)
      : window_(std::move(window)),
        aligned_(aligned_part(window_.bytes(), size_with_farewell(bytes))),
        bytes_(bytes),
        ranks_(static_cast<std::uint32_t>(comm.size())) {
    if (comm.rank() == 0) new (farewell_place()) Farewell();
    comm.barrier();
  }
  WindowMemory(const WindowMemory&) = delete;
  WindowMemory& operator=(const WindowMemory&) = delete;
  ~WindowMemory() override;

  static std::size_t size_with_farewell(std::size_t bytes) {
    return farewell_offset(bytes) + sizeof(Farewell);
  }
  std::span<std::byte> bytes() const override { return aligned_.first(bytes_); }
  void reserve(std::size_t, std::size_t) override {}  // MPI has allocated it

 private:
  static std::size_t farewell_offset(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::byte* farewell_place() const { return aligned_.data() + farewell_offset(bytes_); }

  MpiWindow window_;
  std::span<std::byte> aligned_;
  std::size_t bytes_;
  std::uint32_t ranks_;
};

WindowMemory::~WindowMemory() {
  auto& farewell = *std::launder(reinterpret_cast<Farewell*>(farewell_place()));
  if (mpi_gave_up()) farewell.decide(Farewell::kLeak);
  if (farewell.arrived.fetch_add(1) + 1 == ranks_) farewell.decide(Farewell::kFree);
  farewell.decided.wait_for(kLongestFarewell,
                            [&] { return farewell.verdict.load() != Farewell::kOpen; });
  farewell.decide(Farewell::kLeak);
  if (farewell.verdict.load() == Farewell::kFree) {
    window_.free();
  } else {
    window_.leak();
  }
}

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
  if (window_ == MPI_WIN_NULL || mpi_is_over() || mpi_gave_up()) return;
  if (all_arrive(comm_)) free();
}

void MpiWindow::free() {
  if (!mpi_is_over()) MPI_Win_free(&window_);
  window_ = MPI_WIN_NULL;
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

std::unique_ptr<SharedMemory> share_mpi(Communicator& comm, MPI_Comm handle, std::size_t bytes) {
  auto window =
      MpiWindow::allocate_shared(handle, WindowMemory::size_with_farewell(bytes) + kAlignment);
  return std::make_unique<WindowMemory>(std::move(window), bytes, comm);
}

}  // namespace forebay
