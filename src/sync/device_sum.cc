// A sum on the devices of all ranks.
//
//   tensors on the host      -> memory here --+                        +--> memory here -> tensors
//   tensors on the device    -----------------+-> there -> all_reduce -+-----------------> tensors
//                                     start()                     step()             take()
//
// Which parts of the numbers come from the device may differ between ranks. Reductions are issued
// one by one, in the order of start(): a lane waits for its turn.
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "comm/waiting.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "sync/accelerator.hpp"
#include "sync/summation.hpp"

namespace forebay {
namespace {

/// Of all lanes of a rank.
struct DeviceTurns {
  std::uint64_t given = 0;
  std::uint64_t now = 0;  ///< whose it is
};

class DeviceSum final : public Summation {
 public:
  DeviceSum(std::shared_ptr<Accelerator> accelerator, std::shared_ptr<DeviceTurns> turns,
            std::size_t largest)
      : accelerator_(std::move(accelerator)),
        turns_(std::move(turns)),
        stream_(accelerator_->stream(largest)) {}

  /// A reduction that some rank does not take part in would never end by itself.
  ~DeviceSum() override {
    if (phase_ != Phase::done) accelerator_->abort();
  }

  bool free() const override { return true; }
  std::span<std::byte> begin(TensorType type, Combination how, std::size_t bytes) override {
    reduction_ = {.type = type, .how = how};
    bytes_ = bytes;
    from_device_.clear();
    return stream_->here().first(bytes);
  }

  bool make_mean() override { return reduction_.mean = reduction_.how == Combination::sum; }
  void put(std::size_t at, std::span<const std::byte> from, const DeviceMoment& ready) override {
    if (from.empty()) return;
    stream_->wait_for(ready);
    stream_->copy(stream_->there().data() + at, from.data(), from.size());
    if (!from_device_.empty() && from_device_.back().second == at) {
      from_device_.back().second += from.size();
    } else {
      from_device_.emplace_back(at, at + from.size());
    }
  }

  void start() override {
    for_each_host_range([this](std::size_t at, std::size_t bytes) {
      stream_->copy(stream_->there().data() + at, stream_->here().data() + at, bytes);
    });
    turn_ = turns_->given++;
    phase_ = Phase::queued;
    pace_.begin();
  }

  std::optional<Rest> step() override {
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

  std::span<const std::byte> result() const override { return stream_->here().first(bytes_); }
  void take(std::size_t at, std::span<std::byte> to) override {
    stream_->copy(to.data(), stream_->there().data() + at, to.size());
  }
  bool taken() override { return stream_->idle(); }
  void release() override {}
  /// Copies from and to tensors end by themselves, once the reduction before them is gone.
  void give_up() noexcept override {
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

 private:
  enum class Phase : std::uint8_t { queued, issuing, summing, done };

  /// Calls `copy` for each range of the numbers that is not of the device.
  template <typename Copy>
  void for_each_host_range(Copy copy) const {
    std::size_t begin = 0;
    for (const auto& [from, to] : from_device_) {
      if (begin < from) copy(begin, from - begin);
      begin = to;
    }
    if (begin < bytes_) copy(begin, bytes_ - begin);
  }

  void issue() {
    accelerator_->all_reduce(*stream_, bytes_, reduction_);
    phase_ = Phase::issuing;
  }

  std::shared_ptr<Accelerator> accelerator_;
  std::shared_ptr<DeviceTurns> turns_;
  std::unique_ptr<DeviceStream> stream_;
  DeviceReduction reduction_;
  std::size_t bytes_ = 0;
  std::vector<std::pair<std::size_t, std::size_t>> from_device_;  ///< begin and end, ascending
  std::uint64_t turn_ = 0;
  Phase phase_ = Phase::done;
  Pace pace_;
};

}  // namespace

std::vector<std::unique_ptr<Summation>> device_sums(const std::shared_ptr<Accelerator>& accelerator,
                                                    std::size_t lanes, std::size_t largest) {
  const auto turns = std::make_shared<DeviceTurns>();
  std::vector<std::unique_ptr<Summation>> sums;
  for (std::size_t i = 0; i < lanes; ++i) {
    sums.push_back(std::make_unique<DeviceSum>(accelerator, turns, largest));
  }
  return sums;
}

}  // namespace forebay
