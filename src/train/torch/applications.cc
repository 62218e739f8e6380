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
#include <array>

#include "train/torch/inner_product.hpp"
#include "train/torch/models.hpp"

namespace forebay {
namespace {

using torch::nn::AvgPool1d;
using torch::nn::AvgPool3d;
using torch::nn::Conv1d;
using torch::nn::Conv1dOptions;
using torch::nn::Conv3d;
using torch::nn::Conv3dOptions;
using torch::nn::LeakyReLU;
using torch::nn::LeakyReLUOptions;
using torch::nn::Sequential;

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

}  // namespace

Sequential build_cosmoflow(std::int64_t channels, std::int64_t side, std::int64_t outputs) {
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

Sequential build_neuron(std::int64_t channels, std::int64_t length, std::int64_t outputs) {
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

}  // namespace forebay
