// lenet, cifar10_full and caffenet as in Caffe's model definitions.
#include "train/torch/models.hpp"

#include <fmt/format.h>

#include <cmath>

#include "forebay/error.hpp"
#include "train/torch/inner_product.hpp"

namespace forebay {
namespace {

using torch::Tensor;
using torch::nn::AvgPool2d;
using torch::nn::AvgPool2dOptions;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Dropout;
using torch::nn::Functional;
using torch::nn::LocalResponseNorm;
using torch::nn::LocalResponseNormOptions;
using torch::nn::MaxPool2d;
using torch::nn::MaxPool2dOptions;
using torch::nn::ReLU;
using torch::nn::Sequential;

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

}  // namespace

torch::nn::Sequential build_model(std::string_view net, const Shape& shape, std::int64_t outputs) {
  const auto channels = static_cast<std::int64_t>(shape.front());
  const auto side = static_cast<std::int64_t>(shape.back());
  if (net == "lenet") return lenet(channels, outputs);
  if (net == "cifar10_full") return cifar10_full(channels, outputs);
  if (net == "caffenet") return caffenet(channels, outputs, kCaffeNet);
  if (net == "caffenet_small") return caffenet(channels, outputs, kSmallCaffeNet);
  if (net == "resnet50") return build_resnet50(channels, outputs);
  if (net == "cosmoflow") return build_cosmoflow(channels, side, outputs);
  if (net == "neuron") return build_neuron(channels, side, outputs);
  throw Error(ErrorKind::usage, fmt::format("there is no model for the network '{}'", net));
}

}  // namespace forebay
