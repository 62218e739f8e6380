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
  NetBuilder(std::string name, std::uint64_t side)
      : input_{.kernel = kNoKernel, .channels = 3, .height = side, .width = side} {
    net_.name = std::move(name);
    net_.side = side;
  }

  Value input() const { return input_; }
  Value conv(const std::string& name, Value in, std::uint64_t channels, const Window& window,
             bool bias) {
    const Value out = slide(in, channels, window);
    Kernel kernel{.name = name, .needs = {in.kernel}, .moved = in.elements() + out.elements()};
    kernel.multiply_adds = out.elements() * in.channels * window.height * window.width;
    kernel.parameters.push_back(
        {name + ".weight", {channels, in.channels, window.height, window.width}});
    if (bias) kernel.parameters.push_back({name + ".bias", {channels}});
    return add_kernel(std::move(kernel), out);
  }

  Value batch_norm(const std::string& name, Value in) {
    return elementwise(name, in,
                       {{name + ".weight", {in.channels}}, {name + ".bias", {in.channels}}});
  }

  Value relu(const std::string& name, Value in) { return elementwise(name, in); }
  Value pool(const std::string& name, Value in, const Window& window) {
    const Value out = slide(in, in.channels, window);
    return add_kernel({.name = name, .needs = {in.kernel}, .moved = in.elements() + out.elements()},
                      out);
  }

  /// The average of each channel.
  Value average(const std::string& name, Value in) {
    return pool(name, in, {.height = in.height, .width = in.width});
  }
  Value linear(const std::string& name, Value in, std::uint64_t outputs) {
    const std::uint64_t inputs = in.elements();
    Kernel kernel{.name = name, .needs = {in.kernel}, .moved = inputs + outputs};
    kernel.multiply_adds = inputs * outputs;
    kernel.parameters = {{name + ".weight", {outputs, inputs}}, {name + ".bias", {outputs}}};
    return add_kernel(std::move(kernel), {.channels = outputs, .height = 1, .width = 1});
  }

  Value add(const std::string& name, Value a, Value b) {
    return add_kernel({.name = name, .needs = {a.kernel, b.kernel}, .moved = 3 * a.elements()}, a);
  }
  Value concat(const std::string& name, const std::vector<Value>& parts) {
    Kernel kernel{.name = name};
    Value out = parts.front();
    out.channels = 0;
    for (const Value& part : parts) {
      kernel.needs.push_back(part.kernel);
      out.channels += part.channels;
    }
    kernel.moved = 2 * out.elements();
    return add_kernel(std::move(kernel), out);
  }

  /// NAME.conv, NAME.bn, NAME.relu: as GoogLeNet and Inception repeat it.
  Value basic(const std::string& name, Value in, std::uint64_t channels, const Window& window) {
    const Value sum = conv(name + ".conv", in, channels, window, false);
    return relu(name + ".relu", batch_norm(name + ".bn", sum));
  }

  /// Adds the loss.
  Net finish(Value last) && {
    elementwise("loss", last);
    return std::move(net_);
  }

 private:
  /// The input of the network comes from no kernel.
  static constexpr std::size_t kNoKernel = static_cast<std::size_t>(-1);

  static std::uint64_t steps(std::uint64_t size, std::uint64_t window, std::uint64_t pad,
                             const Window& by) {
    const std::uint64_t room = size + 2 * pad - window;
    std::uint64_t steps = room / by.stride + 1;
    // A window that would begin behind the edge is left out.
    if (by.round_up && room % by.stride != 0 && steps * by.stride < size + pad) ++steps;
    return steps;
  }
  static Value slide(Value in, std::uint64_t channels, const Window& window) {
    return {.channels = channels,
            .height = steps(in.height, window.height, window.pad_height, window),
            .width = steps(in.width, window.width, window.pad_width, window)};
  }

  Value add_kernel(Kernel kernel, Value made) {
    std::erase(kernel.needs, kNoKernel);
    made.kernel = net_.kernels.size();
    net_.kernels.push_back(std::move(kernel));
    return made;
  }

  /// A kernel that reads and writes `in` once and computes little.
  Value elementwise(const std::string& name, Value in, std::vector<Parameter> parameters = {}) {
    return add_kernel({.name = name,
                       .needs = {in.kernel},
                       .moved = 2 * in.elements(),
                       .parameters = std::move(parameters)},
                      in);
  }

  Net net_;
  Value input_;
};

}  // namespace forebay::nets
