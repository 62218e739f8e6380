// Cores of their own for the parts of a training process: see forebay/placement.hpp.
#pragma once

#include "train/trainer.hpp"

namespace forebay {

/// What --placement says, or `partition` where --sync asks for cores of their own and it says
/// nothing; written into the options of loader and gradients. Binds the calling thread to the cores
/// that compute, so call it before there are threads that compute. Collective. Throws usage.
void place_components(Communicator& comm, TrainOptions& options, int compute_threads);

}  // namespace forebay
