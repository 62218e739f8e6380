#include "bench/command/emulation/virtual_device.hpp"

#include <algorithm>

namespace forebay::emulation {

void VirtualDevice::begin(std::int64_t now) {
  end_ = std::max(end_, now);
  idle_ = 0;
}

std::int64_t VirtualDevice::dispatch(std::int64_t now, std::chrono::nanoseconds takes) {
  if (now > end_) {
    idle_ += now - end_;
    end_ = now;
  }
  end_ += takes.count();
  ends_.push_back(end_);
  return end_;
}

bool VirtualDevice::full(std::int64_t now) {
  while (!ends_.empty() && ends_.front() <= now) ends_.pop_front();
  return ends_.size() >= queue_;
}

}  // namespace forebay::emulation
