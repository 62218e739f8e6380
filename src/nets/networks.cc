// Networks that are one chain: AlexNet (Krizhevsky, 2014: the form on one device) and VGG-16
// (Simonyan and Zisserman, 2015).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <functional>
#include <numeric>
#include <span>

#include "forebay/error.hpp"
#include "nets/net_builder.hpp"

namespace forebay::nets {
namespace {
Value conv_relu(NetBuilder& net, const std::string& name, Value in, std::uint64_t channels,
                const Window& window) {
  return net.relu(name + ".relu", net.conv(name, in, channels, window, true));
}

/// Two hidden layers of 4096, and the classes.
Value classify(NetBuilder& net, Value at) {
  at = net.relu("fc6.relu", net.linear("fc6", at, 4096));
  at = net.relu("fc7.relu", net.linear("fc7", at, 4096));
  return net.linear("fc8", at, 1000);
}

Net make_alexnet() {
  NetBuilder net("alexnet", 224);
  const Window pool = Window::square(3, 2);
  Value at = conv_relu(net, "conv1", net.input(), 64, Window::square(11, 4, 2));
  at = net.pool("pool1", at, pool);
  at = conv_relu(net, "conv2", at, 192, Window::square(5, 1, 2));
  at = net.pool("pool2", at, pool);
  at = conv_relu(net, "conv3", at, 384, Window::square(3, 1, 1));
  at = conv_relu(net, "conv4", at, 256, Window::square(3, 1, 1));
  at = conv_relu(net, "conv5", at, 256, Window::square(3, 1, 1));
  at = net.pool("pool5", at, pool);
  return std::move(net).finish(classify(net, at));
}

Net make_vgg16() {
  NetBuilder net("vgg16", 224);
  constexpr std::array<std::uint64_t, 5> kChannels{64, 128, 256, 512, 512};
  constexpr std::array<int, 5> kConvs{2, 2, 3, 3, 3};
  Value at = net.input();
  for (std::size_t stage = 0; stage < kChannels.size(); ++stage) {
    for (int i = 0; i < kConvs[stage]; ++i) {
      at = conv_relu(net, fmt::format("conv{}_{}", stage + 1, i + 1), at, kChannels[stage],
                     Window::square(3, 1, 1));
    }
    at = net.pool(fmt::format("pool{}", stage + 1), at, Window::square(2, 2));
  }
  return std::move(net).finish(classify(net, at));
}

// GoogLeNet (Szegedy et al., 2015) with batch normalization and without auxiliary classifiers. As
// in torchvision, whose trained weights people know, the third branch has windows of 3x3.

/// Channels of the four branches; `reduce` before the windows of 3x3.
struct Branches {
  const char* name;
  std::uint64_t one;
  std::uint64_t reduce3;
  std::uint64_t three;
  std::uint64_t reduce5;
  std::uint64_t five;
  std::uint64_t pooled;
};

Value inception(NetBuilder& net, Value in, const Branches& to) {
  const std::string name = to.name;
  const Window one = Window::square(1);
  const Window three = Window::square(3, 1, 1);
  const Value branch1 = net.basic(name + ".branch1", in, to.one, one);
  Value branch2 = net.basic(name + ".branch2.0", in, to.reduce3, one);
  branch2 = net.basic(name + ".branch2.1", branch2, to.three, three);
  Value branch3 = net.basic(name + ".branch3.0", in, to.reduce5, one);
  branch3 = net.basic(name + ".branch3.1", branch3, to.five, three);
  Value branch4 = net.pool(name + ".branch4.0", in, three);
  branch4 = net.basic(name + ".branch4.1", branch4, to.pooled, one);
  return net.concat(name + ".concat", {branch1, branch2, branch3, branch4});
}

Window pool(std::uint64_t side) {
  Window window = Window::square(side, 2);
  window.round_up = true;
  return window;
}

Net make_googlenet() {
  NetBuilder net("googlenet", 224);
  Value at = net.basic("conv1", net.input(), 64, Window::square(7, 2, 3));
  at = net.pool("maxpool1", at, pool(3));
  at = net.basic("conv2", at, 64, Window::square(1));
  at = net.basic("conv3", at, 192, Window::square(3, 1, 1));
  at = net.pool("maxpool2", at, pool(3));
  at = inception(net, at, {"inception3a", 64, 96, 128, 16, 32, 32});
  at = inception(net, at, {"inception3b", 128, 128, 192, 32, 96, 64});
  at = net.pool("maxpool3", at, pool(3));
  at = inception(net, at, {"inception4a", 192, 96, 208, 16, 48, 64});
  at = inception(net, at, {"inception4b", 160, 112, 224, 24, 64, 64});
  at = inception(net, at, {"inception4c", 128, 128, 256, 24, 64, 64});
  at = inception(net, at, {"inception4d", 112, 144, 288, 32, 64, 64});
  at = inception(net, at, {"inception4e", 256, 160, 320, 32, 128, 128});
  at = net.pool("maxpool4", at, pool(2));
  at = inception(net, at, {"inception5a", 256, 160, 320, 32, 128, 128});
  at = inception(net, at, {"inception5b", 384, 192, 384, 48, 128, 128});
  at = net.linear("fc", net.average("avgpool", at), 1000);
  return std::move(net).finish(at);
}

// Residual networks (He et al., 2016): four stages of blocks whose input is added to their output.
// The blocks of the small ones have two convolutions of 3x3, those of the large ones 1x1, 3x3 (with
// the stride) and 1x1.

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

/// 18, 34, 50, 101 or 152 layers.
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

// Inception-v3 (Szegedy et al., 2016) without its auxiliary classifier: blocks of parallel branches
// whose larger windows are taken apart, in the end into 1x7 and 7x1, 1x3 and 3x1.

constexpr Window kOne = {};
constexpr Window kThree = {3, 3, 1, 1, 1};
constexpr Window kThreeStride2 = {3, 3, 2};
constexpr Window kFive = {5, 5, 1, 2, 2};
constexpr Window kWide7 = {1, 7, 1, 0, 3};
constexpr Window kTall7 = {7, 1, 1, 3, 0};
constexpr Window kWide3 = {1, 3, 1, 0, 1};
constexpr Window kTall3 = {3, 1, 1, 1, 0};

/// One after the other: NAME_1, NAME_2, ...
struct Part {
  std::uint64_t channels;
  Window window;
};

Value branch(NetBuilder& net, const std::string& name, Value at, const std::vector<Part>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    at = net.basic(fmt::format("{}_{}", name, i + 1), at, parts[i].channels, parts[i].window);
  }
  return at;
}

Value pooled(NetBuilder& net, const std::string& name, Value in, std::uint64_t channels) {
  return net.basic(name + ".branch_pool", net.pool(name + ".pool", in, kThree), channels, kOne);
}

Value block_a(NetBuilder& net, const std::string& name, Value in, std::uint64_t pool_channels) {
  const Value one = branch(net, name + ".branch1x1", in, {{64, kOne}});
  const Value five = branch(net, name + ".branch5x5", in, {{48, kOne}, {64, kFive}});
  const Value twice =
      branch(net, name + ".branch3x3dbl", in, {{64, kOne}, {96, kThree}, {96, kThree}});
  return net.concat(name + ".concat", {one, five, twice, pooled(net, name, in, pool_channels)});
}

Value block_b(NetBuilder& net, const std::string& name, Value in) {
  const Value three = branch(net, name + ".branch3x3", in, {{384, kThreeStride2}});
  const Value twice =
      branch(net, name + ".branch3x3dbl", in, {{64, kOne}, {96, kThree}, {96, kThreeStride2}});
  return net.concat(name + ".concat", {three, twice, net.pool(name + ".pool", in, kThreeStride2)});
}

Value block_c(NetBuilder& net, const std::string& name, Value in, std::uint64_t width) {
  const Value one = branch(net, name + ".branch1x1", in, {{192, kOne}});
  const Value seven =
      branch(net, name + ".branch7x7", in, {{width, kOne}, {width, kWide7}, {192, kTall7}});
  const Value twice =
      branch(net, name + ".branch7x7dbl", in,
             {{width, kOne}, {width, kTall7}, {width, kWide7}, {width, kTall7}, {192, kWide7}});
  return net.concat(name + ".concat", {one, seven, twice, pooled(net, name, in, 192)});
}

Value block_d(NetBuilder& net, const std::string& name, Value in) {
  const Value three = branch(net, name + ".branch3x3", in, {{192, kOne}, {320, kThreeStride2}});
  const Value seven = branch(net, name + ".branch7x7x3", in,
                             {{192, kOne}, {192, kWide7}, {192, kTall7}, {192, kThreeStride2}});
  return net.concat(name + ".concat", {three, seven, net.pool(name + ".pool", in, kThreeStride2)});
}

/// Two windows beside each other on the same input.
std::vector<Value> fork(NetBuilder& net, const std::string& name, Value in) {
  return {net.basic(name + "a", in, 384, kWide3), net.basic(name + "b", in, 384, kTall3)};
}

Value block_e(NetBuilder& net, const std::string& name, Value in) {
  std::vector<Value> parts{branch(net, name + ".branch1x1", in, {{320, kOne}})};
  const Value three = branch(net, name + ".branch3x3", in, {{384, kOne}});
  for (const Value& part : fork(net, name + ".branch3x3_2", three)) parts.push_back(part);
  const Value twice = branch(net, name + ".branch3x3dbl", in, {{448, kOne}, {384, kThree}});
  for (const Value& part : fork(net, name + ".branch3x3dbl_3", twice)) parts.push_back(part);
  parts.push_back(pooled(net, name, in, 192));
  return net.concat(name + ".concat", parts);
}

Net make_inception3() {
  NetBuilder net("inception3", 299);
  Value at = net.basic("conv1a", net.input(), 32, kThreeStride2);
  at = net.basic("conv2a", at, 32, {3, 3});
  at = net.basic("conv2b", at, 64, kThree);
  at = net.pool("maxpool1", at, kThreeStride2);
  at = net.basic("conv3b", at, 80, kOne);
  at = net.basic("conv4a", at, 192, {3, 3});
  at = net.pool("maxpool2", at, kThreeStride2);
  at = block_a(net, "mixed5b", at, 32);
  at = block_a(net, "mixed5c", at, 64);
  at = block_a(net, "mixed5d", at, 64);
  at = block_b(net, "mixed6a", at);
  at = block_c(net, "mixed6b", at, 128);
  at = block_c(net, "mixed6c", at, 160);
  at = block_c(net, "mixed6d", at, 160);
  at = block_c(net, "mixed6e", at, 192);
  at = block_d(net, "mixed7a", at);
  at = block_e(net, "mixed7b", at);
  at = block_e(net, "mixed7c", at);
  at = net.linear("fc", net.average("avgpool", at), 1000);
  return std::move(net).finish(at);
}

// All of them.

struct Entry {
  std::string_view name;
  std::function<Net()> make;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all{{"resnet18", [] { return make_resnet(18); }},
                                      {"resnet34", [] { return make_resnet(34); }},
                                      {"resnet50", [] { return make_resnet(50); }},
                                      {"resnet101", [] { return make_resnet(101); }},
                                      {"resnet152", [] { return make_resnet(152); }},
                                      {"alexnet", make_alexnet},
                                      {"googlenet", make_googlenet},
                                      {"inception3", make_inception3},
                                      {"vgg16", make_vgg16}};
  return all;
}

}  // namespace

std::uint64_t Parameter::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

std::uint64_t Net::parameters() const {
  std::uint64_t sum = 0;
  for (const Kernel& kernel : kernels) {
    for (const Parameter& parameter : kernel.parameters) sum += parameter.elements();
  }
  return sum;
}

std::uint64_t Net::parameter_tensors() const {
  std::uint64_t sum = 0;
  for (const Kernel& kernel : kernels) sum += kernel.parameters.size();
  return sum;
}

std::uint64_t Net::multiply_adds() const {
  std::uint64_t sum = 0;
  for (const Kernel& kernel : kernels) sum += kernel.multiply_adds;
  return sum;
}

const std::vector<std::string_view>& net_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Entry& entry : entries()) all.push_back(entry.name);
    return all;
  }();
  return names;
}

Net make_net(std::string_view name) {
  for (const Entry& entry : entries()) {
    if (entry.name == name) return entry.make();
  }
  throw Error(ErrorKind::usage, fmt::format("'{}' is no network", name),
              fmt::format("choose one of: {}", fmt::join(net_names(), ", ")));
}

}  // namespace forebay::nets
