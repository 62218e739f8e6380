#include "sync/servers/newest_parameters.hpp"

#include <algorithm>

#include "core/copy_values.hpp"
#include "sync/servers/server.hpp"

namespace forebay {

NewestParameters::NewestParameters(std::span<const ParameterShard> shards,
                                   std::span<const float> parameters, std::span<const float> told)
    : parameters_(parameters.begin(), parameters.end()), told_(told.begin(), told.end()) {
  for (const ParameterShard& shard : shards) shards_.push_back({.where = shard});
}

void NewestParameters::take(const ServerLetter& letter) {
  const LetterHead& head = letter.head();
  const std::lock_guard lock(mutex_);
  if (head.shard >= shards_.size()) {
    throw Error(ErrorKind::communication, "a message of another rank has parameters of no shard",
                "start all ranks with the same version of Forebay");
  }
  Shard& shard = shards_[head.shard];
  require_length(letter, shard.where.count + told_.size());
  const std::span<const float> numbers = letter.numbers();
  copy_values(numbers.first(shard.where.count), std::span(parameters_).subspan(shard.where.first));
  if (head.shard == 0) copy_values(numbers.subspan(shard.where.count), told_);
  shard.version = head.clock;
  if (head.kind == ServerLetterKind::last) ++last_;
  changed_.notify_all();
}

void NewestParameters::fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = error;
  changed_.notify_all();
}

void NewestParameters::check() const {
  const std::lock_guard lock(mutex_);
  if (failure_) throw Error(*failure_);
}

std::uint64_t NewestParameters::lowest() const {
  return std::ranges::min(shards_, {}, &Shard::version).version;
}

std::uint64_t NewestParameters::version() const {
  const std::lock_guard lock(mutex_);
  return lowest();
}

bool NewestParameters::wait_for(std::uint64_t version, std::chrono::milliseconds limit) const {
  std::unique_lock lock(mutex_);
  const bool there =
      changed_.wait_for(lock, limit, [&] { return failure_ || lowest() >= version; });
  if (failure_) throw Error(*failure_);
  return there;
}

bool NewestParameters::wait_for_last(std::chrono::milliseconds limit, std::uint64_t& clock) {
  std::unique_lock lock(mutex_);
  const bool there =
      changed_.wait_for(lock, limit, [&] { return failure_ || last_ == shards_.size(); });
  if (failure_) throw Error(*failure_);
  if (!there) return false;
  last_ = 0;
  clock = lowest();
  return true;
}

std::uint64_t NewestParameters::copy(std::span<float> parameters, std::span<float> told) const {
  const std::lock_guard lock(mutex_);
  copy_values(parameters_, parameters);
  copy_values(told_, told);
  return lowest();
}

}  // namespace forebay
