#include "core/placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <memory>
#include <system_error>
#include <utility>

#include "core/clock.hpp"
#include "core/limits.hpp"
#include "core/number_text.hpp"
#include "core/read_watch.hpp"
#include "core/topology.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

/// How often a call that may never return is looked at.
constexpr std::chrono::milliseconds kSlice{100};

constexpr std::string_view kCoresPrefix = "cores:";
constexpr std::uint64_t kMaxCore = 65'535;

void require_available(const std::vector<int>& wanted, const std::vector<int>& available) {
  for (const int core : wanted) {
    if (std::ranges::binary_search(available, core)) continue;
    throw Error(ErrorKind::usage,
                fmt::format("placement: core {} is not available to this process", core),
                fmt::format("choose from {}", fmt::join(available, ",")));
  }
}

// Adds "3" or "2-5" to `cores`.
void add_range(std::string_view text, std::vector<int>& cores) {
  const auto dash = text.find('-');
  const auto first = parse_count(text.substr(0, dash), "placement", 0, kMaxCore);
  auto last = first;
  if (dash != std::string_view::npos) {
    last = parse_count(text.substr(dash + 1), "placement", first, kMaxCore);
  }
  for (auto core = first; core <= last; ++core) cores.push_back(static_cast<int>(core));
}

}  // namespace

Placement Placement::parse(std::string_view text) {
  if (text == "shared") return {};
  if (!text.starts_with(kCoresPrefix)) {
    throw Error(ErrorKind::usage, fmt::format("placement: '{}' is not known", text),
                "write shared, or cores:LIST such as cores:0,2-3");
  }
  Placement placement;
  std::string_view rest = text.substr(kCoresPrefix.size());
  while (true) {
    const auto comma = rest.find(',');
    add_range(rest.substr(0, comma), placement.cores);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  std::ranges::sort(placement.cores);
  placement.cores.erase(std::unique(placement.cores.begin(), placement.cores.end()),
                        placement.cores.end());
  return placement;
}

std::string Placement::to_text() const {
  if (cores.empty()) return "shared";
  return fmt::format("{}{}", kCoresPrefix, fmt::join(cores, ","));
}

Placement Placement::of(const CorePlan& plan, Component component) {
  const auto cores = plan.of(component);
  return {.cores = {cores.begin(), cores.end()}};
}

std::vector<int> available_cores() { return Topology().available(); }

int numa_node_of_this_process() {
  try {
    const Topology topology;
    const CpuSet cores;
    const CpuSet nodes;
    const bool bound = hwloc_get_cpubind(topology.get(), cores.get(), HWLOC_CPUBIND_PROCESS) == 0 &&
                       hwloc_cpuset_to_nodeset(topology.get(), cores.get(), nodes.get()) == 0;
    if (!bound || hwloc_bitmap_weight(nodes.get()) != 1) return -1;
    return hwloc_bitmap_first(nodes.get());
  } catch (const Error&) {
    return -1;  // placement is a matter of speed alone
  }
}

void place_this_thread(const Placement& placement) {
  if (placement.cores.empty()) return;
  const Topology topology;
  require_available(placement.cores, topology.available());
  const CpuSet set;
  for (const int core : placement.cores) hwloc_bitmap_set(set.get(), static_cast<unsigned>(core));
  if (hwloc_set_cpubind(topology.get(), set.get(), HWLOC_CPUBIND_THREAD) != 0) {
    throw Error(ErrorKind::usage,
                fmt::format("placement: the thread cannot be bound to {} ({})", placement.to_text(),
                            std::generic_category().message(errno)),
                "use the placement 'shared'");
  }
}

void name_this_thread(const std::string& name) {
  constexpr std::size_t kKernelLimit = 15;
  ::pthread_setname_np(::pthread_self(), name.substr(0, kKernelLimit).c_str());
}

namespace {

/// The kernel's struct sched_attr in its first form, whose header does not get on with libc's.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  ///< ns
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

}  // namespace

// The scheduler (EEVDF) prefers the thread whose turn would end first, and takes the wished length
// of a turn from a field that once belonged to deadline scheduling.
void ask_for_short_turns() noexcept {
  constexpr std::uint64_t kShortestTurn = 100'000;
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.runtime = kShortestTurn;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

HelperThread::HelperThread(std::string name, const Placement& placement, Body body) {
  std::promise<void> started;
  auto placed = started.get_future();
  std::promise<void> ended;
  ended_ = ended.get_future();
  auto live = [name, placement, body = std::move(body), watch = ReadWatch::of_this_thread(),
               started = std::move(started),
               ended = std::move(ended)](const std::stop_token& stop) mutable {
    name_this_thread(name);
    const ReadWatch::Member member(std::move(watch));
    try {
      place_this_thread(placement);
    } catch (...) {
      started.set_exception(std::current_exception());
      return;
    }
    started.set_value();
    body(stop);
    body = nullptr;  // what it owns goes before anybody is told that it has ended
    ended.set_value();
  };
  try {
    thread_ = std::jthread(std::move(live));
  } catch (const std::system_error& error) {
    throw no_thread(name, error.code().value());
  }
  placed.get();  // on failure the thread has ended, and thread_ joins it
}

void HelperThread::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

bool HelperThread::ended_within(std::chrono::milliseconds limit) {
  if (!thread_.joinable()) return true;
  thread_.request_stop();
  return ended_.wait_for(limit) == std::future_status::ready;
}

void HelperThread::abandon() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.detach();
}

bool returns_within(std::chrono::milliseconds limit, const std::string& name,
                    std::function<void()> call) {
  const auto failure = std::make_shared<std::exception_ptr>();
  HelperThread thread(name, Placement{}, [call = std::move(call), failure](const std::stop_token&) {
    try {
      call();
    } catch (...) {
      *failure = std::current_exception();
    }
  });
  WaitedTime waited;
  while (!thread.ended_within(std::min(limit, kSlice))) {
    waited.step();
    if (waited.total() < limit) continue;
    thread.abandon();
    return false;
  }
  thread.stop();
  if (*failure) std::rethrow_exception(*failure);
  return true;
}

}  // namespace forebay
