// The layers of the networks. Only files of this folder include LibTorch: it is heavy.
#pragma once

#include <torch/torch.h>

#include <string_view>

namespace forebay {

/// The layers of `net` with its usual initialization, drawn from torch's default generator.
torch::nn::Sequential build_model(std::string_view net, std::int64_t channels,
                                  std::int64_t classes);

/// He et al. 2016, 50 layers. A file of its own.
torch::nn::Sequential build_resnet50(std::int64_t channels, std::int64_t classes);

}  // namespace forebay
