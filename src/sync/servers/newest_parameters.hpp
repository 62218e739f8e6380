// What has come down to a worker: the newest of each shard, put together.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "forebay/error.hpp"
#include "sync/servers/server_tree.hpp"

namespace forebay {

/// Thread-safe: the progress thread puts in, the training thread takes out.
class NewestParameters {
 public:
  NewestParameters(std::span<const ParameterShard> shards, std::span<const float> parameters,
                   std::span<const float> told);

  /// Takes parameters in. Throws communication for those of an unknown shard or another length.
  void take(const ServerLetter& letter);
  void fail(const Error& error);
  void check() const;

  /// The version that all shards have.
  std::uint64_t version() const;
  /// Waits until version() is `version` or more; false after `limit`. Throws what failed.
  bool wait_for(std::uint64_t version, std::chrono::milliseconds limit) const;
  /// The same until all shards have come for the last time; then `clock` is where clocks go on.
  bool wait_for_last(std::chrono::milliseconds limit, std::uint64_t& clock);
  /// Copies them out; returns their version.
  std::uint64_t copy(std::span<float> parameters, std::span<float> told) const;

 private:
  struct Shard {
    ParameterShard where;
    std::uint64_t version = 0;
  };

  std::uint64_t lowest() const;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<Shard> shards_;
  std::vector<float> parameters_;
  std::vector<float> told_;  ///< by the first server
  std::size_t last_ = 0;     ///< shards that have come for the last time
  std::optional<Error> failure_;
};

}  // namespace forebay
