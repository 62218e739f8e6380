// The layers of the networks. Only files of this folder include LibTorch: it is heavy.
#pragma once

#include <torch/nn.h>

#include <string_view>

#include "train/network.hpp"

namespace forebay {

/// The layers of `net` for inputs of `shape`, channels first, with its usual initialization, drawn
/// from torch's default generator.
torch::nn::Sequential build_model(std::string_view net, const Shape& shape, std::int64_t outputs);

}  // namespace forebay
