// The layers of the networks. Only files of this folder include LibTorch: it is heavy.
#pragma once

#include <torch/nn.h>

#include <string_view>

#include "train/shape.hpp"

namespace forebay {

/// The layers of `net` for inputs of `shape`, channels first, with its usual initialization, drawn
/// from torch's default generator.
torch::nn::Sequential build_model(std::string_view net, const Shape& shape, std::int64_t outputs);

/// He et al. 2016, 50 layers. A file of its own.
torch::nn::Sequential build_resnet50(std::int64_t channels, std::int64_t classes);

/// The applications of paper 003. A file of their own.
torch::nn::Sequential build_cosmoflow(std::int64_t channels, std::int64_t side,
                                      std::int64_t outputs);
torch::nn::Sequential build_neuron(std::int64_t channels, std::int64_t length,
                                   std::int64_t outputs);

}  // namespace forebay
