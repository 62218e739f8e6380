// Networks computed by LibTorch; includes nothing of it.
#pragma once

#include <memory>

#include "train/network.hpp"

namespace forebay {

/// Throws usage (no such network), unsupported (images that do not fit, see fit_input).
std::unique_ptr<Network> make_torch_network(const NetworkOptions& options);

/// How many threads compute in this process.
void set_compute_threads(int threads);

}  // namespace forebay
