#include "storage/fault_guard.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "forebay/error.hpp"
#include "storage/file_error.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kNoFault = std::numeric_limits<std::uint64_t>::max();

// One guarded mapping, valid while `version` is odd. All accesses are sequentially consistent: they
// are rare, and that is the easiest to reason about.
struct Entry {
  std::atomic<bool> claimed;
  std::atomic<std::uint64_t> version;
  std::atomic<std::uintptr_t> begin;
  std::atomic<std::uintptr_t> end;
  std::atomic<int> protection;  // of the zeros that take its place
  std::atomic<std::uint64_t> fault;
};

static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free);

// A signal handler is handed no object, so its state is the process's: static, and zero before any
// code runs.
constinit std::array<Entry, FaultGuard::kCapacity> entries{};
constinit std::atomic<std::size_t> entries_in_use = 0;  // all entries from here on are free
constinit struct sigaction previous_action {};          // written before our handler is installed

/// The files of the entries: for messages, not for the handler.
struct Names {
  std::mutex mutex;
  std::map<std::size_t, std::string> paths;
};

Names& names() {
  // Never destroyed: files may be mapped until after the end of main.
  static auto* const all = new Names;
  return *all;
}

std::uintptr_t page_mask() {
  static const auto mask = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)) - 1;
  return mask;
}

// Reads the entry as a unit; false when it is free, changing, or does not hold `address`.
bool holds(const Entry& entry, std::uintptr_t address) {
  const std::uint64_t version = entry.version;
  const bool live = version % 2 == 1;
  const bool inside = entry.begin <= address && address < entry.end;
  return live && inside && entry.version == version;
}

Entry* find_entry(std::uintptr_t address) {
  const std::size_t count = entries_in_use;
  for (std::size_t i = 0; i < count; ++i) {
    if (holds(entries[i], address)) return &entries[i];
  }
  return nullptr;
}

void record_fault(Entry& entry, std::uint64_t offset) {
  std::uint64_t lowest = entry.fault;
  while (offset < lowest && !entry.fault.compare_exchange_weak(lowest, offset)) {
  }
}

// mmap(2) as a bare system call: the library's wrapper is not promised to be safe in a handler.
bool map_zeros(std::uintptr_t begin, std::uintptr_t end, int protection) {
  const long result = ::syscall(SYS_mmap, begin, end - begin, protection,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  return result != -1;
}

bool handle_guarded_fault(const siginfo_t& info) {
  const bool sent_by_kernel = info.si_code > 0;
  if (!sent_by_kernel) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  Entry* entry = find_entry(address);
  if (entry == nullptr) return false;
  record_fault(*entry, address - entry->begin);
  return map_zeros(address & ~page_mask(), entry->end, entry->protection);
}

// The default action: once restored, a faulting access faults again and ends the process; a signal
// that a process sent has to be sent again.
void act_by_default(int signal, const siginfo_t& info) {
  ::signal(signal, SIG_DFL);
  if (info.si_code <= 0) ::raise(signal);
}

void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction& previous = previous_action;
  const bool takes_info = (previous.sa_flags & SA_SIGINFO) != 0;
  if (!takes_info && previous.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (!takes_info && (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN)) {
    act_by_default(signal, *info);
    return;
  }
  // A one-shot handler counts on the next fault to end the process.
  if ((previous.sa_flags & SA_RESETHAND) != 0) ::signal(signal, SIG_DFL);
  if (takes_info) {
    previous.sa_sigaction(signal, info, context);
  } else {
    previous.sa_handler(signal);
  }
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  if (!handle_guarded_fault(*info)) pass_on(signal, info, context);
  errno = saved_errno;
}

int install_handler() {
  page_mask();  // evaluated here, so that the handler finds it ready
  if (::sigaction(SIGBUS, nullptr, &previous_action) != 0) return errno;
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  ::sigemptyset(&ours.sa_mask);
  return ::sigaction(SIGBUS, &ours, nullptr) == 0 ? 0 : errno;
}

void require_handler() {
  static const int error = install_handler();
  if (error == 0) return;
  throw Error(ErrorKind::io, "no handler for SIGBUS can be installed (" + errno_text(error) + ")",
              "use '--engine pread'");
}

std::size_t claim_entry() {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].claimed.exchange(true)) return i;
  }
  throw Error(ErrorKind::unsupported, "too many mapped files are open at once",
              "open fewer at a time, or use '--engine pread'");
}

void raise_entries_in_use(std::size_t count) {
  std::size_t current = entries_in_use;
  while (current < count && !entries_in_use.compare_exchange_weak(current, count)) {
  }
}

}  // namespace

FaultGuard::FaultGuard(std::span<const std::byte> mapping, std::string path, bool writable) {
  require_handler();
  entry_ = claim_entry();
  Entry& entry = entries[entry_];
  const auto begin = reinterpret_cast<std::uintptr_t>(mapping.data());
  entry.begin = begin;
  entry.end = (begin + mapping.size() + page_mask()) & ~page_mask();
  entry.protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  entry.fault = kNoFault;
  const std::lock_guard lock(names().mutex);
  names().paths[entry_] = std::move(path);
  ++entry.version;
  raise_entries_in_use(entry_ + 1);
}

FaultGuard::~FaultGuard() {
  const std::lock_guard lock(names().mutex);
  names().paths.erase(entry_);
  ++entries[entry_].version;
  entries[entry_].claimed = false;
}

std::optional<FaultGuard::Place> FaultGuard::place_of(const std::byte* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(names().mutex);
  const Entry* const entry = find_entry(at);
  if (entry == nullptr) return std::nullopt;
  const auto number = static_cast<std::size_t>(entry - entries.data());
  return Place{.path = names().paths[number], .offset = at - entry->begin};
}

std::optional<std::uint64_t> FaultGuard::fault() const noexcept {
  const std::uint64_t offset = entries[entry_].fault;
  if (offset == kNoFault) return std::nullopt;
  return offset;
}

}  // namespace forebay
