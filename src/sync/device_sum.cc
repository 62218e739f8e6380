#include "sync/device_sum.hpp"

#include <chrono>
#include <thread>

#include "core/clock.hpp"
#include "core/log.hpp"

namespace forebay {

DeviceSum::DeviceSum(std::shared_ptr<Accelerator> accelerator, std::shared_ptr<DeviceTurns> turns,
                     std::size_t largest)
    : accelerator_(std::move(accelerator)),
      turns_(std::move(turns)),
      stream_(accelerator_->stream(largest)) {}

/// A reduction that some rank does not take part in would never end by itself.
DeviceSum::~DeviceSum() {
  if (phase_ != Phase::done) accelerator_->abort();
}

std::span<std::byte> DeviceSum::begin(TensorType type, Combination how, std::size_t bytes) {
  reduction_ = {.type = type, .how = how};
  bytes_ = bytes;
  from_device_.clear();
  return stream_->here().first(bytes);
}

bool DeviceSum::make_mean() { return reduction_.mean = reduction_.how == Combination::sum; }

void DeviceSum::put(std::size_t at, std::span<const std::byte> from, const DeviceMoment& ready) {
  if (from.empty()) return;
  stream_->wait_for(ready);
  stream_->copy(stream_->there().data() + at, from.data(), from.size());
  if (!from_device_.empty() && from_device_.back().second == at) {
    from_device_.back().second += from.size();
  } else {
    from_device_.emplace_back(at, at + from.size());
  }
}

template <typename Copy>
void DeviceSum::for_each_host_range(Copy copy) const {
  std::size_t begin = 0;
  for (const auto& [from, to] : from_device_) {
    if (begin < from) copy(begin, from - begin);
    begin = to;
  }
  if (begin < bytes_) copy(begin, bytes_ - begin);
}

void DeviceSum::start() {
  for_each_host_range([this](std::size_t at, std::size_t bytes) {
    stream_->copy(stream_->there().data() + at, stream_->here().data() + at, bytes);
  });
  turn_ = turns_->given++;
  phase_ = Phase::queued;
  pace_.begin();
}

void DeviceSum::issue() {
  accelerator_->all_reduce(*stream_, bytes_, reduction_);
  phase_ = Phase::issuing;
}

std::optional<Summation::Rest> DeviceSum::step() {
  if (phase_ == Phase::done) return std::nullopt;
  const std::int64_t look_ns = now_ns();
  if (phase_ == Phase::queued && turns_->now == turn_) issue();
  const bool settled = accelerator_->settled();
  if (phase_ == Phase::issuing && settled) {
    ++turns_->now;
    for_each_host_range([this](std::size_t at, std::size_t bytes) {
      stream_->copy(stream_->here().data() + at, stream_->there().data() + at, bytes);
    });
    phase_ = Phase::summing;
  }
  if (phase_ != Phase::summing || !stream_->idle()) return pace_.rest_after(look_ns);
  phase_ = Phase::done;
  return std::nullopt;
}

std::span<const std::byte> DeviceSum::result() const { return stream_->here().first(bytes_); }

void DeviceSum::take(std::size_t at, std::span<std::byte> to) {
  stream_->copy(to.data(), stream_->there().data() + at, to.size());
}

/// Copies from and to tensors end by themselves, once the reduction before them is gone.
void DeviceSum::give_up() noexcept {
  constexpr std::chrono::seconds kPatience{10};
  try {
    accelerator_->abort();
    phase_ = Phase::done;
    const auto end = now_ns() + std::chrono::nanoseconds(kPatience).count();
    while (!stream_->idle() && now_ns() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  } catch (const std::exception& error) {
    log(LogLevel::debug, "a sum on a device was given up: {}", error.what());
  }
}

}  // namespace forebay
