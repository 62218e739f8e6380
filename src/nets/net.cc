#include "nets/net.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <numeric>

#include "forebay/error.hpp"
#include "nets/net_builder.hpp"

namespace forebay::nets {
namespace {

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
