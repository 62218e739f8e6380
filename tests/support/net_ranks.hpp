// Ranks that are connected by TCP, as threads of one process: each has connections, and a network
// thread, of its own.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "forebay/connect.hpp"

namespace forebay::test {

/// What ranks that are threads leave for each other.
class CommonValues {
 public:
  using Value = std::vector<std::byte>;

  void set(const std::string& key, std::span<const std::byte> value) {
    const std::lock_guard lock(mutex_);
    values_[key].assign(value.begin(), value.end());
    changed_.notify_all();
  }
  std::optional<Value> get(const std::string& key, std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return values_.contains(key); });
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }
  void erase(const std::string& key) {
    const std::lock_guard lock(mutex_);
    values_.erase(key);
  }
  std::map<std::string, Value> all() {
    const std::lock_guard lock(mutex_);
    return values_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Value> values_;
};

class MemoryRendezvous : public Rendezvous {
 public:
  explicit MemoryRendezvous(std::shared_ptr<CommonValues> values) : values_(std::move(values)) {}
  void set(const std::string& key, std::span<const std::byte> value) override {
    EXPECT_LE(key.size(), kLongestKey);
    EXPECT_LE(value.size(), kLongestValue);
    values_->set(key, value);
  }
  std::optional<std::vector<std::byte>> get(const std::string& key,
                                            std::chrono::milliseconds limit) override {
    return values_->get(key, limit);
  }
  void erase(const std::string& key) noexcept override { values_->erase(key); }

 private:
  std::shared_ptr<CommonValues> values_;
};

/// FOREBAY_RANKS_PER_NODE, for as long as it lives; 0: not set.
class RanksPerNode {
 public:
  explicit RanksPerNode(int ranks) {
    if (ranks > 0) ::setenv(kName, std::to_string(ranks).c_str(), 1);
  }
  ~RanksPerNode() { ::unsetenv(kName); }
  RanksPerNode(const RanksPerNode&) = delete;
  RanksPerNode& operator=(const RanksPerNode&) = delete;

 private:
  static constexpr const char* kName = "FOREBAY_RANKS_PER_NODE";
};

/// Runs `body` as `ranks` ranks; rethrows the exception of the lowest rank that threw.
inline void run_threads(int ranks, const std::function<void(int)>& body) {
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(rank);
        } catch (...) {
          thrown[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
    }
  }
  for (const auto& one : thrown) {
    if (one) std::rethrow_exception(one);
  }
}

/// As run_ranks().
inline void run_net_ranks(int ranks, int ranks_per_node,
                          const std::function<void(std::shared_ptr<Communicator>)>& body) {
  const RanksPerNode environment(ranks_per_node);
  const auto values = std::make_shared<CommonValues>();
  run_threads(ranks, [&](int rank) {
    MemoryRendezvous rendezvous(values);
    body(connect_ranks(rendezvous,
                       {.rank = rank, .size = ranks, .timeout = std::chrono::seconds(60)}));
  });
  EXPECT_TRUE(values->all().empty()) << "something stays at the rendezvous";
}

}  // namespace forebay::test
