#include "train/net_catalog.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr Task kClassify = Task::classify;
constexpr Task kRegress = Task::regress;
constexpr SolverKind kSgd = SolverKind::sgd;
constexpr SolverKind kAdam = SolverKind::adam;

// Rates, momentum and decay are those of Caffe's solver files (resnet50: of its authors), rates
// scaled to batches of 64 for lenet. cifar10_full was published for raw pixels minus a mean image.
// cosmoflow and neuron: rates of paper 003, IV-B, which are meant to fall in steps. Mean and scale
// of cosmoflow suit logarithms of some counts a point.
constexpr NetInfo kNets[] = {
    {"lenet", "two 5x5 convolutions, two inner products, 28x28 images", kClassify, 2, 28, 10, 0.0F,
     1.0F / 256, kSgd, 0.01, 0.9, 5e-4},
    {"cifar10_full", "Caffe's small CIFAR-10 network, 32x32 images, 89 K parameters", kClassify, 2,
     32, 10, 120.0F, 1.0F, kSgd, 0.001, 0.9, 4e-3},
    {"caffenet", "Caffe's AlexNet, 227x227 images, 61 M parameters", kClassify, 2, 227, 1000,
     117.0F, 1.0F, kSgd, 0.01, 0.9, 5e-4},
    {"caffenet_small", "CaffeNet with a quarter of the channels, 67x67 images, 1 M parameters",
     kClassify, 2, 67, 1000, 117.0F, 1.0F, kSgd, 0.01, 0.9, 5e-4},
    {"resnet50", "residual network of 50 layers, 224x224 images, 25.6 M parameters", kClassify, 2,
     224, 1000, 117.0F, 1.0F / 58, kSgd, 0.1, 0.9, 1e-4},
    {"cosmoflow",
     "seven 3-D convolutions, three inner products, cubes to numbers, 9.4 M parameters", kRegress,
     3, 0, 0, 1.0F, 2.0F, kAdam, 0.002, 0.9, 0},
    {"neuron", "four 1-D convolutions, five inner products, series to numbers, 3.2 M parameters",
     kRegress, 1, 0, 0, 0.0F, 1.0F, kAdam, 0.0005, 0.9, 0},
};

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace

std::span<const NetInfo> net_catalog() { return kNets; }

const NetInfo& find_net(std::string_view name) {
  const auto* found = std::ranges::find(kNets, name, &NetInfo::name);
  if (found != std::end(kNets)) return *found;
  std::vector<std::string_view> names;
  for (const NetInfo& net : kNets) names.push_back(net.name);
  throw Error(ErrorKind::usage, fmt::format("there is no network '{}'", name),
              fmt::format("choose one of {}", fmt::join(names, ", ")));
}

ImageShape as_image(const Shape& shape) {
  constexpr std::uint64_t kLongestSide = 1 << 20;
  const bool is_image = (shape.size() == 2 || shape.size() == 3) &&
                        std::ranges::all_of(shape, [](auto side) { return side <= kLongestSide; });
  if (!is_image) {
    throw Error(ErrorKind::unsupported,
                fmt::format("samples of {} are no images", to_string(shape)),
                "images are channel, height, width or height, width");
  }
  const auto side = [&shape](std::size_t from_end) {
    return static_cast<std::uint32_t>(shape[shape.size() - from_end]);
  };
  return {.channels = shape.size() == 3 ? side(3) : 1, .height = side(2), .width = side(1)};
}

InputFit fit_input(const NetInfo& net, const ImageShape& image) {
  const std::uint64_t shorter = std::min(image.height, image.width);
  if (shorter * kLargestGrowth < net.side || image.channels == 0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("images of {} are too small for {}, which takes {}x{}",
                            to_string(image), net.name, net.side, net.side),
                "choose a network for smaller images, or pack larger ones");
  }
  InputFit fit{.resized_height = image.height, .resized_width = image.width, .top = 0, .left = 0};
  if (shorter < net.side) {
    fit.resized_height = divide_up(image.height * net.side, shorter);
    fit.resized_width = divide_up(image.width * net.side, shorter);
  }
  fit.top = (fit.resized_height - net.side) / 2;
  fit.left = (fit.resized_width - net.side) / 2;
  return fit;
}

}  // namespace forebay
