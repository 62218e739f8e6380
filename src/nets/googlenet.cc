// GoogLeNet (Szegedy et al., 2015) with batch normalization and without auxiliary classifiers. As
// in torchvision, whose trained weights people know, the third branch has windows of 3x3.
#include <fmt/format.h>

#include "nets/net_builder.hpp"

namespace forebay::nets {
namespace {

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

}  // namespace

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

}  // namespace forebay::nets
