// Puts networks together: every call adds one kernel and returns what it makes.
#pragma once

#include <string>
#include <vector>

#include "nets/net.hpp"

namespace forebay::nets {

/// What a kernel makes: so many channels of so many by so many numbers.
struct Value {
  std::size_t kernel = 0;
  std::uint64_t channels = 0;
  std::uint64_t height = 0;
  std::uint64_t width = 0;

  std::uint64_t elements() const { return channels * height * width; }
};

/// Height and width of a window that slides over a value.
struct Window {
  std::uint64_t height = 1;
  std::uint64_t width = 1;
  std::uint64_t stride = 1;
  std::uint64_t pad_height = 0;
  std::uint64_t pad_width = 0;
  bool round_up = false;  ///< the last step may reach over the edge

  static Window square(std::uint64_t side, std::uint64_t stride = 1, std::uint64_t pad = 0) {
    return {side, side, stride, pad, pad};
  }
};

class NetBuilder {
 public:
  NetBuilder(std::string name, std::uint64_t side);

  Value input() const { return input_; }
  Value conv(const std::string& name, Value in, std::uint64_t channels, const Window& window,
             bool bias);
  Value batch_norm(const std::string& name, Value in);
  Value relu(const std::string& name, Value in);
  Value pool(const std::string& name, Value in, const Window& window);
  /// The average of each channel.
  Value average(const std::string& name, Value in);
  Value linear(const std::string& name, Value in, std::uint64_t outputs);
  Value add(const std::string& name, Value a, Value b);
  Value concat(const std::string& name, const std::vector<Value>& parts);
  /// NAME.conv, NAME.bn, NAME.relu: as GoogLeNet and Inception repeat it.
  Value basic(const std::string& name, Value in, std::uint64_t channels, const Window& window);

  /// Adds the loss.
  Net finish(Value last) &&;

 private:
  Value add_kernel(Kernel kernel, Value made);
  /// A kernel that reads and writes `in` once and computes little.
  Value elementwise(const std::string& name, Value in, std::vector<Parameter> parameters = {});

  Net net_;
  Value input_;
};

// What is built with it, for make_net() to choose from.

/// 18, 34, 50, 101 or 152 layers.
Net make_resnet(int layers);
Net make_alexnet();
Net make_vgg16();
Net make_googlenet();
Net make_inception3();

}  // namespace forebay::nets
