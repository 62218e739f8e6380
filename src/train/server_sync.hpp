// Gradients through parameter servers (forebay/parameter_server.hpp): see gradient_sync.hpp.
//
//   finish()   push gradients and what stands behind them, pull parameters
//   servers    mean of the gradients -> Solver::update_part, with the rate of the push's iteration
//
// With a staleness, a server updates with what one node has pushed: its mean, with the learning
// rate times its part of the samples of an iteration, so that a step of all ranks is as long as
// without.
#pragma once

#include "train/gradient_sync.hpp"

namespace forebay {

/// See make_gradient_sync().
std::unique_ptr<GradientSync> make_server_sync(const std::shared_ptr<Communicator>& comm,
                                               Network& network, Solver& solver,
                                               const GradientOptions& options,
                                               std::function<void()> interrupt);

}  // namespace forebay
