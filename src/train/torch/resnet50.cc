// ResNet-50 (He et al., "Deep residual learning for image recognition", CVPR 2016): a 7x7
// convolution, then 3 + 4 + 6 + 3 bottlenecks, each 1x1 down, 3x3, 1x1 up to four times its width,
// with a shortcut around. The stride sits on the 3x3 convolution, as is usual today.
#include "train/torch/inner_product.hpp"
#include "train/torch/models.hpp"

namespace forebay {
namespace {

using torch::Tensor;
using torch::nn::AdaptiveAvgPool2d;
using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::MaxPool2d;
using torch::nn::MaxPool2dOptions;
using torch::nn::ReLU;
using torch::nn::Sequential;

constexpr std::int64_t kExpansion = 4;

Conv2d unbiased(std::int64_t in, std::int64_t out, std::int64_t size, std::int64_t stride) {
  Conv2d layer(Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false));
  torch::nn::init::kaiming_normal_(layer->weight, 0.0, torch::kFanOut, torch::kReLU);
  return layer;
}

class BottleneckImpl : public torch::nn::Module {
 public:
  BottleneckImpl(std::int64_t in, std::int64_t width, std::int64_t stride) {
    const std::int64_t out = width * kExpansion;
    BatchNorm2d last(out);
    // Starting as the identity helps large batches (Goyal et al. 2017).
    torch::nn::init::zeros_(last->weight);
    residual_ = register_module(
        "residual", Sequential(unbiased(in, width, 1, 1), BatchNorm2d(width), ReLU(),
                               unbiased(width, width, 3, stride), BatchNorm2d(width), ReLU(),
                               unbiased(width, out, 1, 1), last));
    if (in == out && stride == 1) return;
    shortcut_ =
        register_module("shortcut", Sequential(unbiased(in, out, 1, stride), BatchNorm2d(out)));
  }

  Tensor forward(const Tensor& x) {
    const Tensor around = shortcut_.is_empty() ? x : shortcut_->forward(x);
    return torch::relu(residual_->forward(x) + around);
  }

 private:
  Sequential residual_{nullptr};
  Sequential shortcut_{nullptr};
};
TORCH_MODULE(Bottleneck);

}  // namespace

Sequential build_resnet50(std::int64_t channels, std::int64_t classes) {
  Sequential net(unbiased(channels, 64, 7, 2), BatchNorm2d(64), ReLU(),
                 MaxPool2d(MaxPool2dOptions(3).stride(2).padding(1)));
  constexpr std::int64_t kBlocks[] = {3, 4, 6, 3};
  std::int64_t in = 64;
  std::int64_t width = 64;
  for (std::size_t stage = 0; stage < std::size(kBlocks); ++stage) {
    for (std::int64_t block = 0; block < kBlocks[stage]; ++block) {
      const std::int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      net->push_back(Bottleneck(in, width, stride));
      in = width * kExpansion;
    }
    width *= 2;
  }
  net->push_back(AdaptiveAvgPool2d(1));
  net->push_back(InnerProduct(in, classes));
  return net;
}

}  // namespace forebay
