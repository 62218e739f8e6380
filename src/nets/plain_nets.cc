// Networks that are one chain: AlexNet (Krizhevsky, 2014: the form on one device) and VGG-16
// (Simonyan and Zisserman, 2015).
#include <fmt/format.h>

#include <array>

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

}  // namespace

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

}  // namespace forebay::nets
