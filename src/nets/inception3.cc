// Inception-v3 (Szegedy et al., 2016) without its auxiliary classifier: blocks of parallel branches
// whose larger windows are taken apart, in the end into 1x7 and 7x1, 1x3 and 3x1.
#include <fmt/format.h>

#include "nets/net_builder.hpp"

namespace forebay::nets {
namespace {

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

}  // namespace

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

}  // namespace forebay::nets
