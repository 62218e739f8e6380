#include "core/worker_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace forebay {

WorkerPool::WorkerPool(const std::string& name, unsigned threads, const Placement& placement) {
  for (unsigned i = 1; i < threads; ++i) {
    workers_.emplace_back(fmt::format("{}-{}", name, i), placement,
                          [this](const std::stop_token& stop) { live(stop); });
  }
}

// All are asked to stop before any is waited for.
WorkerPool::~WorkerPool() {
  for (HelperThread& worker : workers_) worker.request_stop();
}

void WorkerPool::run(std::size_t count, const Work& work) {
  if (workers_.empty() || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  std::unique_lock lock(mutex_);
  work_ = &work;
  count_ = count;
  next_ = 0;
  error_ = nullptr;
  started_.notify_all();
  take_part(lock);
  ended_.wait(lock, [this] { return running_ == 0; });
  work_ = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void WorkerPool::live(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (started_.wait(lock, stop, [this] { return work_ != nullptr && next_ < count_; })) {
    take_part(lock);
  }
}

void WorkerPool::take_part(std::unique_lock<std::mutex>& lock) {
  while (next_ < count_) call(next_++, lock);
}

void WorkerPool::call(std::size_t index, std::unique_lock<std::mutex>& lock) {
  ++running_;
  lock.unlock();
  std::exception_ptr error;
  try {
    (*work_)(index);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (error) {
    count_ = next_;  // no more are handed out
    if (!error_ || index < failed_) {
      error_ = std::move(error);
      failed_ = index;
    }
  }
  if (--running_ == 0 && next_ >= count_) ended_.notify_one();
}

unsigned choose_workers(unsigned wanted, int ranks, unsigned most) {
  if (wanted > 0) return wanted;
  const unsigned cores = std::thread::hardware_concurrency();  // those that this process may use
  return std::clamp(cores / static_cast<unsigned>(std::max(ranks, 1)), 1U, std::max(most, 1U));
}

unsigned choose_workers(unsigned wanted, const Placement& placement, int ranks, unsigned most) {
  if (wanted == 0 && !placement.cores.empty()) {
    return static_cast<unsigned>(std::min<std::size_t>(placement.cores.size(), std::max(most, 1U)));
  }
  return choose_workers(wanted, ranks, most);
}

}  // namespace forebay
