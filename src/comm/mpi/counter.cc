// The SharedCounter of MPI: one-sided where that works, and works while rank 0 is busy elsewhere;
// else rank 0 answers messages.
//
// Which of both is tried out at creation, as libraries and networks differ: some cannot make the
// window at all, others move nothing while the target is outside MPI. Rank 0 stays outside MPI for
// a moment and looks whether the additions of all others arrive in its memory nevertheless.
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "comm/messages.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/mpi/window.hpp"
#include "comm/values.hpp"
#include "core/log.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;

// In the memory of rank 0.
constexpr std::size_t kNumber = 0;
constexpr std::size_t kProbe = 8;
constexpr std::size_t kBytes = 16;

constexpr milliseconds kLongestAddition{5000};

/// How long rank 0 waits for the additions of `ranks` - 1 others, which may share few cores.
milliseconds probe_time(int ranks) { return milliseconds(100) + ranks * milliseconds(2); }

class WindowCounter final : public SharedCounter {
 public:
  WindowCounter(std::shared_ptr<MpiCommunicator> comm, MpiWindow window)
      : comm_(std::move(comm)), window_(std::move(window)) {}

  std::optional<std::uint64_t> fetch_add(std::uint64_t n, const GiveUp&) override {
    if (mpi_is_over()) return std::nullopt;
    return window_.fetch_add(kNumber, n, kLongestAddition);
  }
  void add(std::uint64_t n) override { fetch_add(n, {}); }
  bool serve() override { return false; }
  bool needs_serving() const override { return false; }
  std::string describe() const override { return "one-sided, in the memory of rank 0"; }

 private:
  std::shared_ptr<MpiCommunicator> comm_;  ///< goes after the window
  MpiWindow window_;
};

// The others begin this much later, so that rank 0 is outside MPI by then.
constexpr milliseconds kHeadStart{20};

/// Rank 0 stays outside MPI while the others add. What has arrived before it had left proves
/// nothing.
bool sees_additions(const MpiWindow& window, int ranks) {
  const std::atomic_ref<std::uint64_t> number(
      *reinterpret_cast<std::uint64_t*>(window.bytes().data() + kProbe));
  const auto all = static_cast<std::uint64_t>(ranks - 1);
  const auto deadline = std::chrono::steady_clock::now() + probe_time(ranks);
  if (number.load() != 0) return false;
  while (number.load() < all && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  return number.load() == all;
}

/// Whether additions work, and while rank 0 is outside MPI. Collective.
bool progresses(MpiCommunicator& comm, MpiWindow& window, std::string& why) {
  std::string fault;
  bool works = true;
  bool moves = true;
  comm.barrier();
  try {
    if (comm.rank() == 0) {
      moves = sees_additions(window, comm.size());
    } else {
      std::this_thread::sleep_for(kHeadStart);
      window.fetch_add(kProbe, 1, kLongestAddition);
    }
  } catch (const Error& error) {
    works = false;
    log(LogLevel::info, "one-sided access fails: {}", error.what());
  }
  works = everywhere(comm, works);
  moves = everywhere(comm, moves);
  if (!works) {
    why = "one-sided access fails";
    window.leak();  // nothing can be agreed in it
  }
  if (works && !moves) why = "one-sided access waits until rank 0 is inside MPI";
  return works && moves;
}

}  // namespace

std::unique_ptr<SharedCounter> share_mpi_counter(std::shared_ptr<MpiCommunicator> comm) {
  const milliseconds limit = comm->timeout();
  if (comm->size() == 1) return served_counter(std::move(comm), limit, "alone");
  std::string why;
  auto window =
      try_window(*comm, why, [&] { return MpiWindow::allocate(comm->handle(), kBytes, kBytes); });
  if (!window) why = "one-sided access fails (" + why + ")";
  if (window && progresses(*comm, *window, why)) {
    return std::make_unique<WindowCounter>(std::move(comm), std::move(*window));
  }
  window.reset();
  return served_counter(std::move(comm), limit, std::move(why));
}

}  // namespace forebay
