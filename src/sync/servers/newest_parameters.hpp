// What has come down to a worker: the newest of each shard, put together.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/copy_values.hpp"
#include "forebay/error.hpp"
#include "forebay/parameter_server.hpp"
#include "sync/servers/server.hpp"

namespace forebay {

/// Thread-safe: the progress thread puts in, the training thread takes out.
class NewestParameters {
 public:
  NewestParameters(std::span<const ParameterShard> shards, std::span<const float> parameters,
                   std::span<const float> told)
      : parameters_(parameters.begin(), parameters.end()), told_(told.begin(), told.end()) {
    for (const ParameterShard& shard : shards) shards_.push_back({.where = shard});
  }

  /// Takes parameters in. Throws communication for those of an unknown shard or another length.
  void take(const ServerLetter& letter) {
    const LetterHead& head = letter.head();
    const std::lock_guard lock(mutex_);
    if (head.shard >= shards_.size()) {
      throw Error(ErrorKind::communication, "a message of another rank has parameters of no shard",
                  "start all ranks with the same version of Forebay");
    }
    Shard& shard = shards_[head.shard];
    require_length(letter, shard.where.count + told_.size());
    const std::span<const float> numbers = letter.numbers();
    copy_values(numbers.first(shard.where.count),
                std::span(parameters_).subspan(shard.where.first));
    if (head.shard == 0) copy_values(numbers.subspan(shard.where.count), told_);
    shard.version = head.clock;
    if (head.kind == ServerLetterKind::last) ++last_;
    changed_.notify_all();
  }

  void fail(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = error;
    changed_.notify_all();
  }

  void check() const {
    const std::lock_guard lock(mutex_);
    if (failure_) throw Error(*failure_);
  }

  /// The version that all shards have.
  std::uint64_t version() const {
    const std::lock_guard lock(mutex_);
    return lowest();
  }

  /// Waits until version() is `version` or more; false after `limit`. Throws what failed.
  bool wait_for(std::uint64_t version, std::chrono::milliseconds limit) const {
    std::unique_lock lock(mutex_);
    const bool there =
        changed_.wait_for(lock, limit, [&] { return failure_ || lowest() >= version; });
    if (failure_) throw Error(*failure_);
    return there;
  }

  /// The same until all shards have come for the last time; then `clock` is where clocks go on.
  bool wait_for_last(std::chrono::milliseconds limit, std::uint64_t& clock) {
    std::unique_lock lock(mutex_);
    const bool there =
        changed_.wait_for(lock, limit, [&] { return failure_ || last_ == shards_.size(); });
    if (failure_) throw Error(*failure_);
    if (!there) return false;
    last_ = 0;
    clock = lowest();
    return true;
  }

  /// Copies them out; returns their version.
  std::uint64_t copy(std::span<float> parameters, std::span<float> told) const {
    const std::lock_guard lock(mutex_);
    copy_values(parameters_, parameters);
    copy_values(told_, told);
    return lowest();
  }

 private:
  struct Shard {
    ParameterShard where;
    std::uint64_t version = 0;
  };

  std::uint64_t lowest() const { return std::ranges::min(shards_, {}, &Shard::version).version; }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<Shard> shards_;
  std::vector<float> parameters_;
  std::vector<float> told_;  ///< by the first server
  std::size_t last_ = 0;     ///< shards that have come for the last time
  std::optional<Error> failure_;
};

}  // namespace forebay
