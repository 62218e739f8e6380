#include "comm/net/fork_guard.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <utility>

namespace forebay::net {
namespace {

/// Of the process. Never destroyed: a fork may come at any time.
struct GuardedDescriptors {
  std::mutex mutex;  ///< held while the process forks, so that the child finds the list whole
  std::list<const std::vector<int>*> all;
  std::atomic<unsigned> forks = 0;  ///< that led to this process
};

GuardedDescriptors& guarded() {
  static auto* const registry = [] {
    auto* const made = new GuardedDescriptors;
    pthread_atfork([] { guarded().mutex.lock(); }, [] { guarded().mutex.unlock(); },
                   [] {
                     for (const auto* descriptors : guarded().all) {
                       for (const int descriptor : *descriptors) ::close(descriptor);
                     }
                     guarded().all.clear();
                     ++guarded().forks;
                     guarded().mutex.unlock();
                   });
    return made;
  }();
  return *registry;
}

}  // namespace

ForkGuard::ForkGuard(std::vector<int> descriptors) : descriptors_(std::move(descriptors)) {
  auto& registry = guarded();
  const std::lock_guard lock(registry.mutex);
  registry.all.push_back(&descriptors_);
  forks_ = registry.forks;
}

ForkGuard::~ForkGuard() {
  const std::lock_guard lock(guarded().mutex);
  guarded().all.remove(&descriptors_);
}

bool ForkGuard::in_child() const {
  return guarded().forks.load(std::memory_order_relaxed) != forks_;
}

}  // namespace forebay::net
