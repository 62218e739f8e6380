// How much memory an order asks for: the samples of its largest buffer.
#pragma once

#include <cstdint>

#include "forebay/epoch_order.hpp"

namespace forebay {

/// No Buffer of any rank and epoch of `order` (valid) loads more samples, and few load less.
/// `resumed`: a run that goes on in an epoch which others have begun.
std::uint64_t most_loaded(const OrderOptions& order, bool resumed);

/// Whether a buffer's samples lie all over the data set, so that neighbours in the file are mostly
/// not wanted together.
bool is_scattered(const OrderOptions& order);

/// Whether a buffer's samples are loaded in the order in which they are drawn.
bool loads_as_drawn(const OrderOptions& order);

}  // namespace forebay
