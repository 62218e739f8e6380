// A sum on the devices of all ranks.
//
//   tensors on the host      -> memory here --+                        +--> memory here -> tensors
//   tensors on the device    -----------------+-> there -> all_reduce -+-----------------> tensors
//                                     start()                     step()             take()
//
// Which parts of the numbers come from the device may differ between ranks. Reductions are issued
// one by one, in the order of start(): a lane waits for its turn.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "comm/waiting.hpp"
#include "sync/accelerator.hpp"
#include "sync/summation.hpp"

namespace forebay {

/// Of all lanes of a rank.
struct DeviceTurns {
  std::uint64_t given = 0;
  std::uint64_t now = 0;  ///< whose it is
};

class DeviceSum final : public Summation {
 public:
  DeviceSum(std::shared_ptr<Accelerator> accelerator, std::shared_ptr<DeviceTurns> turns,
            std::size_t largest);
  ~DeviceSum() override;

  bool free() const override { return true; }
  std::span<std::byte> begin(TensorType type, Combination how, std::size_t bytes) override;
  bool make_mean() override;
  void put(std::size_t at, std::span<const std::byte> from, const DeviceMoment& ready) override;
  void start() override;
  std::optional<Rest> step() override;
  std::span<const std::byte> result() const override;
  void take(std::size_t at, std::span<std::byte> to) override;
  bool taken() override { return stream_->idle(); }
  void release() override {}
  void give_up() noexcept override;

 private:
  enum class Phase : std::uint8_t { queued, issuing, summing, done };

  /// Calls `copy` for each range of the numbers that is not of the device.
  template <typename Copy>
  void for_each_host_range(Copy copy) const;
  void issue();

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

}  // namespace forebay
