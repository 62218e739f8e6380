#include "loader/run_epochs.hpp"

#include <algorithm>
#include <utility>

namespace forebay {

RunEpochs::RunEpochs(OrderOptions options, RunLimits limits)
    : options_(std::move(options)),
      progress_(std::move(limits.start)),
      left_(limits.iterations),
      epochs_(limits.epochs) {
  EpochOrder(options_, progress_.epoch, progress_.done);
}

std::optional<RunEpoch> RunEpochs::next() {
  dropped_ += std::exchange(to_drop_, 0);
  while (progress_.epoch < epochs_ && left_ > 0) {
    EpochOrder order(options_, progress_.epoch, progress_.done);
    const std::uint64_t begin = order.first_iteration();
    const std::uint64_t taken = std::min(order.steps() - begin, left_);
    if (left_ != UINT64_MAX) left_ -= taken;
    const bool whole = begin + taken == order.steps();
    auto before = std::exchange(progress_, {progress_.epoch + 1, {}}).done;
    if (begin > 0) before.pop_back();
    if (taken > 0) {
      if (whole) to_drop_ = order.dropped();
      return RunEpoch{std::move(order), std::move(before), begin, begin + taken};
    }
    dropped_ += order.dropped();
  }
  return std::nullopt;
}

}  // namespace forebay
