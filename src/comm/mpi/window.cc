#include "comm/mpi/window.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "comm/gate.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/values.hpp"
#include "comm/waiting.hpp"
#include "core/log.hpp"
#include "core/non_copyable.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::chrono::seconds kLongestFarewell{5};
constexpr std::chrono::seconds kLongestRemoteFarewell{1};

/// All ranks of `comm` arrive here. Throws communication when one does not within 5 s.
void meet(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(comm, &request), "MPI_Ibarrier");
  wait_for(request, {.timeout = kLongestFarewell}, "the other ranks");
}

/// Called by MPI_Finalize, through an attribute of MPI_COMM_SELF, in the reverse order of creation:
/// the same on all ranks of a window. Libraries may crash over a window that nobody has freed.
int free_at_finalize(MPI_Comm, int, void* window, void*) {
  const std::unique_ptr<MPI_Win> handle(static_cast<MPI_Win*>(window));
  if (*handle == MPI_WIN_NULL || mpi_gave_up()) return MPI_SUCCESS;
  MPI_Win_unlock_all(*handle);
  return MPI_Win_free(handle.get());
}

/// What MPI reads and writes during one addition.
struct Addition {
  std::uint64_t n = 0;
  std::uint64_t before = 0;
};

/// The same agreement as Farewell, for ranks that do not share memory: three numbers before the
/// memory of rank 0. Who claims first decides, and then writes the verdict for all.
struct RemoteFarewell {
  std::uint64_t arrived;
  std::uint64_t claims;
  std::uint64_t verdict;  ///< a Farewell::Verdict
};

static_assert(sizeof(RemoteFarewell) <= MpiWindow::kHead);

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
class WindowMemory final : public SharedMemory, private NonCopyable {
 public:
  WindowMemory(MpiWindow window, std::size_t bytes, Communicator& comm)
      : window_(std::move(window)),
        aligned_(aligned_part(window_.bytes(), size_with_farewell(bytes))),
        bytes_(bytes),
        ranks_(static_cast<std::uint32_t>(comm.size())) {
    if (comm.rank() == 0) new (farewell_place()) Farewell();
    comm.barrier();
  }
  ~WindowMemory() override {
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

}  // namespace

MpiWindow::MpiWindow(MPI_Comm comm, MPI_Win window, std::span<std::byte> bytes)
    : comm_(comm), window_(window), bytes_(bytes) {}

MpiWindow::MpiWindow(MpiWindow&& other) noexcept
    : comm_(other.comm_),
      window_(std::exchange(other.window_, MPI_WIN_NULL)),
      bytes_(other.bytes_),
      open_to_all_(other.open_to_all_),
      at_finalize_(other.at_finalize_) {}

MpiWindow& MpiWindow::operator=(MpiWindow&& other) noexcept {
  std::swap(comm_, other.comm_);
  std::swap(window_, other.window_);
  std::swap(bytes_, other.bytes_);
  std::swap(open_to_all_, other.open_to_all_);
  std::swap(at_finalize_, other.at_finalize_);
  return *this;
}

MpiWindow::~MpiWindow() { free_with_others(); }

bool MpiWindow::free_with_others() {
  if (window_ == MPI_WIN_NULL || mpi_is_over()) return true;
  if (mpi_gave_up() || !open_to_all_ || !all_will_free()) return false;
  free();
  return true;
}

void MpiWindow::free() {
  if (!mpi_is_over() && open_to_all_) {
    MPI_Comm_delete_attr(MPI_COMM_SELF, at_finalize_);  // frees the window
    MPI_Comm_free_keyval(&at_finalize_);
  } else if (!mpi_is_over()) {
    MPI_Win_free(&window_);
  }
  window_ = MPI_WIN_NULL;
}

// The last one to arrive wants to free, and whoever has waited too long wants to leak.
bool MpiWindow::all_will_free() {
  const auto deadline = std::chrono::steady_clock::now() + kLongestRemoteFarewell;
  try {
    int ranks = 0;
    check_mpi(MPI_Comm_size(comm_, &ranks), "MPI_Comm_size");
    const std::uint64_t arrived =
        1 + fetch_add_at(offsetof(RemoteFarewell, arrived), 1, kLongestFarewell);
    return decide_to_free(arrived == static_cast<std::uint64_t>(ranks), deadline);
  } catch (const Error& error) {
    log(LogLevel::warning, "an MPI window is left to the end of the process: {}", error.what());
    return false;
  }
}

bool MpiWindow::decide_to_free(bool wanted, std::chrono::steady_clock::time_point deadline) {
  const auto add = [&](std::size_t member, std::uint64_t n) {
    return fetch_add_at(member, n, kLongestFarewell);
  };
  const auto verdict = [&] { return add(offsetof(RemoteFarewell, verdict), 0); };
  const auto claim = [&](Farewell::Verdict decision) {
    if (add(offsetof(RemoteFarewell, claims), 1) == 0) {
      add(offsetof(RemoteFarewell, verdict), decision);
    }
  };
  if (wanted) claim(Farewell::kFree);
  bool late = false;
  // Whoever has claimed first writes the verdict at once, so the extra time is hardly needed.
  const WaitPolicy policy{.timeout = 2 * kLongestFarewell};
  for (Waiting waiting(policy, "the other ranks");; waiting.step()) {
    const std::uint64_t decided = verdict();
    if (decided != Farewell::kOpen) return decided == Farewell::kFree;
    if (!late && std::chrono::steady_clock::now() >= deadline) {
      late = true;
      claim(Farewell::kLeak);
    }
  }
}

std::uint64_t MpiWindow::fetch_add(std::size_t offset, std::uint64_t n,
                                   std::chrono::milliseconds limit) {
  return fetch_add_at(kHead + offset, n, limit);
}

std::uint64_t MpiWindow::fetch_add_at(std::size_t place, std::uint64_t n,
                                      std::chrono::milliseconds limit) {
  auto addition = std::make_unique<Addition>(Addition{.n = n});
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Rget_accumulate(&addition->n, 1, MPI_UINT64_T, &addition->before, 1, MPI_UINT64_T,
                                0, static_cast<MPI_Aint>(place), 1, MPI_UINT64_T, MPI_SUM, window_,
                                &request),
            "MPI_Rget_accumulate");
  try {
    wait_for(request, {.timeout = limit}, "an addition in the memory of rank 0");
    return addition->before;
  } catch (const Error&) {
    static_cast<void>(addition.release());  // MPI may still write there
    throw;
  }
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

MpiWindow MpiWindow::allocate(MPI_Comm comm, std::size_t bytes, std::size_t zeros) {
  const std::size_t size = kHead + bytes;
  void* base = nullptr;
  MPI_Win handle = MPI_WIN_NULL;
  check_mpi(MPI_Win_allocate(static_cast<MPI_Aint>(size), 1, MPI_INFO_NULL, comm,
                             static_cast<void*>(&base), &handle),
            "MPI_Win_allocate");
  MpiWindow window(comm, handle, {static_cast<std::byte*>(base), size});
  window.open_to_all(zeros);
  return window;
}

MpiWindow MpiWindow::over(MPI_Comm comm, std::span<std::byte> room) {
  MPI_Win handle = MPI_WIN_NULL;
  check_mpi(MPI_Win_create(room.data(), static_cast<MPI_Aint>(room.size()), 1, MPI_INFO_NULL, comm,
                           &handle),
            "MPI_Win_create");
  MpiWindow window(comm, handle, room);
  window.open_to_all(0);
  return window;
}

// The zeros have to be there before any rank adds to them.
void MpiWindow::open_to_all(std::size_t zeros) {
  check_mpi(MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
  std::ranges::fill(bytes_.first(kHead + zeros), std::byte{0});
  check_mpi(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "MPI_Win_lock_all");
  check_mpi(MPI_Win_sync(window_), "MPI_Win_sync");
  meet(comm_);
  bytes_ = bytes_.subspan(kHead);
  check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_at_finalize, &at_finalize_, nullptr),
            "MPI_Comm_create_keyval");
  auto handle = std::make_unique<MPI_Win>(window_);
  check_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, at_finalize_, handle.get()), "MPI_Comm_set_attr");
  static_cast<void>(handle.release());  // the callback takes it over
  open_to_all_ = true;
}

std::shared_ptr<MpiWindow> try_window(Communicator& comm, std::string& fault,
                                      const std::function<MpiWindow()>& make) {
  std::shared_ptr<MpiWindow> window;
  std::string mine;
  comm.barrier();  // what follows blocks inside MPI
  try {
    window = std::make_shared<MpiWindow>(make());
  } catch (const Error& error) {
    mine = error.happened();
  }
  if (everywhere(comm, window != nullptr)) return window;
  if (window) window->leak();
  const auto faulty = gather_all(comm, std::uint8_t{mine.empty()});
  const auto first = std::ranges::find(faulty, 0) - faulty.begin();
  fault = broadcast_text(comm, mine, static_cast<int>(first));
  return nullptr;
}

std::unique_ptr<SharedMemory> share_mpi(Communicator& comm, MPI_Comm handle, std::size_t bytes) {
  auto window =
      MpiWindow::allocate_shared(handle, WindowMemory::size_with_farewell(bytes) + kAlignment);
  return std::make_unique<WindowMemory>(std::move(window), bytes, comm);
}

}  // namespace forebay
