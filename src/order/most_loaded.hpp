// How much memory an order asks for: the samples of its largest buffer.
#pragma once

#include <cstdint>

#include "forebay/epoch_order.hpp"

namespace forebay {

/// No Buffer of any rank and epoch of `order` (valid) loads more samples, and few load less.
/// `resumed`: a run that goes on in an epoch which others have begun.
std::uint64_t most_loaded(const OrderOptions& order, bool resumed);

}  // namespace forebay
