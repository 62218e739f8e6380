// Gradients through the engine of forebay/sync.hpp: see gradient_sync.hpp.
#pragma once

#include "train/gradient_sync.hpp"

namespace forebay {

/// See make_gradient_sync(); for every strategy but automatic and blocking.
std::unique_ptr<GradientSync> make_background_sync(const std::shared_ptr<Communicator>& comm,
                                                   Network& network, const GradientOptions& options,
                                                   std::function<void()> interrupt);

}  // namespace forebay
