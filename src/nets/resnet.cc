// Residual networks (He et al., 2016): four stages of blocks whose input is added to their output.
// The blocks of the small ones have two convolutions of 3x3, those of the large ones 1x1, 3x3 (with
// the stride) and 1x1.
#include <fmt/format.h>

#include <array>
#include <span>

#include "forebay/error.hpp"
#include "nets/net_builder.hpp"

namespace forebay::nets {
namespace {

struct Shape {
  int layers;
  bool bottleneck;
  std::array<int, 4> blocks;
};

constexpr std::array<Shape, 5> kShapes{{{18, false, {2, 2, 2, 2}},
                                        {34, false, {3, 4, 6, 3}},
                                        {50, true, {3, 4, 6, 3}},
                                        {101, true, {3, 4, 23, 3}},
                                        {152, true, {3, 8, 36, 3}}}};
constexpr std::uint64_t kExpansion = 4;  // of a bottleneck's output over its width

/// conv, bn and, but for the last of a block, relu.
struct Step {
  std::uint64_t channels;
  std::uint64_t side;
  std::uint64_t stride;
};

Value block(NetBuilder& net, const std::string& name, Value in, std::span<const Step> steps) {
  Value at = in;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    at = net.conv(fmt::format("{}.conv{}", name, i + 1), at, step.channels,
                  Window::square(step.side, step.stride, step.side / 2), false);
    at = net.batch_norm(fmt::format("{}.bn{}", name, i + 1), at);
    if (i + 1 < steps.size()) at = net.relu(fmt::format("{}.relu{}", name, i + 1), at);
  }
  Value shortcut = in;
  if (in.channels != at.channels || in.height != at.height) {
    shortcut = net.conv(name + ".downsample.0", in, at.channels,
                        Window::square(1, in.height / at.height), false);
    shortcut = net.batch_norm(name + ".downsample.1", shortcut);
  }
  return net.relu(name + ".relu", net.add(name + ".add", at, shortcut));
}

Value stage(NetBuilder& net, int number, Value at, const Shape& shape) {
  const std::uint64_t width = std::uint64_t{64} << number;
  for (int i = 0; i < shape.blocks[static_cast<std::size_t>(number)]; ++i) {
    const std::uint64_t stride = number > 0 && i == 0 ? 2 : 1;
    const std::string name = fmt::format("layer{}.{}", number + 1, i);
    if (shape.bottleneck) {
      at = block(
          net, name, at,
          std::array<Step, 3>{{{width, 1, 1}, {width, 3, stride}, {kExpansion * width, 1, 1}}});
    } else {
      at = block(net, name, at, std::array<Step, 2>{{{width, 3, stride}, {width, 3, 1}}});
    }
  }
  return at;
}

}  // namespace

Net make_resnet(int layers) {
  for (const Shape& shape : kShapes) {
    if (shape.layers != layers) continue;
    NetBuilder net(fmt::format("resnet{}", layers), 224);
    Value at = net.conv("conv1", net.input(), 64, Window::square(7, 2, 3), false);
    at = net.relu("relu1", net.batch_norm("bn1", at));
    at = net.pool("maxpool", at, Window::square(3, 2, 1));
    for (int number = 0; number < 4; ++number) at = stage(net, number, at, shape);
    at = net.linear("fc", net.average("avgpool", at), 1000);
    return std::move(net).finish(at);
  }
  throw Error(ErrorKind::usage, fmt::format("there is no ResNet of {} layers", layers),
              "choose 18, 34, 50, 101 or 152");
}

}  // namespace forebay::nets
