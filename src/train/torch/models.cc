// The networks that the trainer knows: lenet, cifar10_full and caffenet as in Caffe's model
// definitions; resnet50; those of paper 003.
#include "train/torch/models.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "forebay/error.hpp"

namespace forebay {
namespace {

using torch::Tensor;
using torch::nn::AdaptiveAvgPool2d;
using torch::nn::AvgPool1d;
using torch::nn::AvgPool2d;
using torch::nn::AvgPool2dOptions;
using torch::nn::AvgPool3d;
using torch::nn::BatchNorm2d;
using torch::nn::Conv1d;
using torch::nn::Conv1dOptions;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Conv3d;
using torch::nn::Conv3dOptions;
using torch::nn::Dropout;
using torch::nn::Functional;
using torch::nn::LeakyReLU;
using torch::nn::LeakyReLUOptions;
using torch::nn::LocalResponseNorm;
using torch::nn::LocalResponseNormOptions;
using torch::nn::MaxPool2d;
using torch::nn::MaxPool2dOptions;
using torch::nn::ReLU;
using torch::nn::Sequential;

// A fully connected layer, computed as a convolution over images of one pixel.
//
// LibTorch hands convolutions to oneDNN but its Linear to the system's BLAS, which on Debian is the
// plain reference code unless an administrator chose another: four to six times slower.
class InnerProductImpl : public torch::nn::Module {
 public:
  InnerProductImpl(std::int64_t in, std::int64_t out)
      : product_(register_module("product", torch::nn::Conv2d(in, out, 1))) {}

  torch::Tensor forward(const torch::Tensor& x) {
    return product_->forward(x.flatten(1).unsqueeze(2).unsqueeze(3)).flatten(1);
  }

  torch::Tensor& weight() { return product_->weight; }
  torch::Tensor& bias() { return product_->bias; }

 private:
  torch::nn::Conv2d product_;
};
TORCH_MODULE(InnerProduct);

// Convolutions keep weights as members, inner products as methods.
Tensor& weight_of(Conv2d& layer) { return layer->weight; }
Tensor& bias_of(Conv2d& layer) { return layer->bias; }
Tensor& weight_of(InnerProduct& layer) { return layer->weight(); }
Tensor& bias_of(InnerProduct& layer) { return layer->bias(); }

// Caffe's "gaussian" filler for weights, a constant for biases.
template <typename Layer>
Layer gaussian(Layer layer, double deviation, double bias = 0) {
  const torch::NoGradGuard no_gradient;
  weight_of(layer).normal_(0, deviation);
  bias_of(layer).fill_(bias);
  return layer;
}

// Caffe's "xavier" filler: uniform with the variance 1 / fan-in.
template <typename Layer>
Layer xavier(Layer layer) {
  const torch::NoGradGuard no_gradient;
  const auto fan_in = static_cast<double>(weight_of(layer)[0].numel());
  const double bound = std::sqrt(3.0 / fan_in);
  weight_of(layer).uniform_(-bound, bound);
  bias_of(layer).zero_();
  return layer;
}

// Caffe rounds the output size of pooling up.
MaxPool2d max_pool(std::int64_t size, std::int64_t stride) {
  return MaxPool2d(MaxPool2dOptions(size).stride(stride).ceil_mode(true));
}

AvgPool2d average_pool(std::int64_t size, std::int64_t stride) {
  return AvgPool2d(AvgPool2dOptions(size).stride(stride).ceil_mode(true));
}

// Local response normalization over a 3x3 neighbourhood of the same channel (WITHIN_CHANNEL):
// x * (1 + alpha * mean of squares) ^ -beta. LibTorch only has the one across channels.
Tensor normalize_within_channel(const Tensor& x) {
  constexpr double kAlpha = 5e-5;
  constexpr double kBeta = 0.75;
  const Tensor mean = torch::avg_pool2d(x * x, {3, 3}, {1, 1}, {1, 1});
  return x * (mean * kAlpha + 1).pow(-kBeta);
}

Sequential lenet(std::int64_t channels, std::int64_t classes) {
  return Sequential(xavier(Conv2d(channels, 20, 5)), max_pool(2, 2),  //
                    xavier(Conv2d(20, 50, 5)), max_pool(2, 2),        //
                    xavier(InnerProduct(50 * 4 * 4, 500)), ReLU(),
                    xavier(InnerProduct(500, classes)));
}

Sequential cifar10_full(std::int64_t channels, std::int64_t classes) {
  const auto convolution = [](std::int64_t in, std::int64_t out, double deviation) {
    return gaussian(Conv2d(Conv2dOptions(in, out, 5).padding(2)), deviation);
  };
  return Sequential(convolution(channels, 32, 1e-4), max_pool(3, 2), ReLU(),
                    Functional(normalize_within_channel),  //
                    convolution(32, 32, 0.01), ReLU(), average_pool(3, 2),
                    Functional(normalize_within_channel),  //
                    convolution(32, 64, 0.01), ReLU(), average_pool(3, 2),
                    gaussian(InnerProduct(64 * 4 * 4, classes), 0.01));
}

/// Output channels of CaffeNet's five convolutions, units of its inner products, and the height
/// and width that its last pooling leaves.
struct CaffeNetSize {
  std::int64_t convolutions[5];
  std::int64_t inner;
  std::int64_t side;
};
constexpr CaffeNetSize kCaffeNet{{96, 256, 384, 384, 256}, 4096, 6};
constexpr CaffeNetSize kSmallCaffeNet{{24, 64, 96, 96, 64}, 512, 1};

Sequential caffenet(std::int64_t channels, std::int64_t classes, const CaffeNetSize& size) {
  const auto normalize = [] {
    return LocalResponseNorm(LocalResponseNormOptions(5).alpha(1e-4).beta(0.75).k(1));
  };
  const auto convolution = [](const Conv2dOptions& options, double bias) {
    return gaussian(Conv2d(options), 0.01, bias);
  };
  const auto& [first, second, third, fourth, fifth] = size.convolutions;
  return Sequential(
      convolution(Conv2dOptions(channels, first, 11).stride(4), 0), ReLU(), max_pool(3, 2),
      normalize(),  //
      convolution(Conv2dOptions(first, second, 5).padding(2).groups(2), 1), ReLU(), max_pool(3, 2),
      normalize(),  //
      convolution(Conv2dOptions(second, third, 3).padding(1), 0), ReLU(),
      convolution(Conv2dOptions(third, fourth, 3).padding(1).groups(2), 1), ReLU(),
      convolution(Conv2dOptions(fourth, fifth, 3).padding(1).groups(2), 1), ReLU(), max_pool(3, 2),
      gaussian(InnerProduct(fifth * size.side * size.side, size.inner), 0.005, 1), ReLU(),
      Dropout(0.5), gaussian(InnerProduct(size.inner, size.inner), 0.005, 1), ReLU(), Dropout(0.5),
      gaussian(InnerProduct(size.inner, classes), 0.01));
}

// ResNet-50 (He et al., "Deep residual learning for image recognition", CVPR 2016): a 7x7
// convolution, then 3 + 4 + 6 + 3 bottlenecks, each 1x1 down, 3x3, 1x1 up to four times its width,
// with a shortcut around. The stride sits on the 3x3 convolution, as is usual today.

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

Sequential resnet50(std::int64_t channels, std::int64_t classes) {
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

// The networks of paper 003's applications, whose layers the paper counts but does not list:
//
//   cosmoflow   12 x 128^3 -> 7 times [3x3x3 convolution, leaky ReLU, halve the sides] -> 2^3
//               channels 16, 32, 64, 128, 256, 256, 256 (the last one does not halve)
//               -> 2048 -> 256 -> 4                                  9,442,100 parameters
//   neuron      3 x 1600 -> 4 times [convolution of 5, leaky ReLU, quarter the length] -> 6
//               channels 32, 64, 128, 256
//               -> 1024 -> 1024 -> 256 -> 256 -> 19                  3,172,563 parameters
//
// Smaller cubes and shorter series: a pooling that would leave less than 2 points of an axis is
// left out. So cubes of 4 and more powers of two all have the same number of parameters.

constexpr double kSlope = 0.01;     // of the leaky ReLU
constexpr std::int64_t kLeast = 2;  // points that a pooling must leave

LeakyReLU activation() { return LeakyReLU(LeakyReLUOptions().negative_slope(kSlope)); }

// He et al. 2015: keeps the variance through layers with (nearly) rectified outputs.
void initialize(torch::Tensor& weight, torch::Tensor& bias) {
  const torch::NoGradGuard no_gradient;
  torch::nn::init::kaiming_normal_(weight, kSlope, torch::kFanIn, torch::kLeakyReLU);
  bias.zero_();
}

template <typename Convolution, typename Options>
Convolution convolution(const Options& options) {
  Convolution layer(options);
  initialize(layer->weight, layer->bias);
  return layer;
}

/// Inner products from `in` numbers over the hidden `units` to `outputs`.
void add_inner_products(Sequential& net, std::int64_t in, std::initializer_list<std::int64_t> units,
                        std::int64_t outputs) {
  const auto product = [](std::int64_t from, std::int64_t to) {
    InnerProduct layer(from, to);
    initialize(layer->weight(), layer->bias());
    return layer;
  };
  for (const std::int64_t out : units) {
    net->push_back(product(in, out));
    net->push_back(activation());
    in = out;
  }
  net->push_back(product(in, outputs));
}

Sequential cosmoflow(std::int64_t channels, std::int64_t side, std::int64_t outputs) {
  Sequential net;
  constexpr std::array<std::int64_t, 7> kChannels{16, 32, 64, 128, 256, 256, 256};
  for (std::size_t i = 0; i < kChannels.size(); ++i) {
    net->push_back(convolution<Conv3d>(Conv3dOptions(channels, kChannels[i], 3).padding(1)));
    net->push_back(activation());
    channels = kChannels[i];
    if (i + 1 == kChannels.size() || side / 2 < kLeast) continue;
    net->push_back(AvgPool3d(2));
    side /= 2;
  }
  add_inner_products(net, channels * side * side * side, {2048, 256}, outputs);
  return net;
}

Sequential neuron(std::int64_t channels, std::int64_t length, std::int64_t outputs) {
  Sequential net;
  for (const std::int64_t out : {32, 64, 128, 256}) {
    net->push_back(convolution<Conv1d>(Conv1dOptions(channels, out, 5).padding(2)));
    net->push_back(activation());
    channels = out;
    if (length / 4 < kLeast) continue;
    net->push_back(AvgPool1d(4));
    length /= 4;
  }
  add_inner_products(net, channels * length, {1024, 1024, 256, 256}, outputs);
  return net;
}

}  // namespace

torch::nn::Sequential build_model(std::string_view net, const Shape& shape, std::int64_t outputs) {
  const auto channels = static_cast<std::int64_t>(shape.front());
  const auto side = static_cast<std::int64_t>(shape.back());
  if (net == "lenet") return lenet(channels, outputs);
  if (net == "cifar10_full") return cifar10_full(channels, outputs);
  if (net == "caffenet") return caffenet(channels, outputs, kCaffeNet);
  if (net == "caffenet_small") return caffenet(channels, outputs, kSmallCaffeNet);
  if (net == "resnet50") return resnet50(channels, outputs);
  if (net == "cosmoflow") return cosmoflow(channels, side, outputs);
  if (net == "neuron") return neuron(channels, side, outputs);
  throw Error(ErrorKind::usage, fmt::format("there is no model for the network '{}'", net));
}

}  // namespace forebay
