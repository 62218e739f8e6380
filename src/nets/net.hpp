// Convolutional networks as lists of kernels: what each needs, how much it computes, and which
// parameters it has. Nothing is computed: `forebay-bench sync` lets a virtual device take the time
// that it would take, and sums gradients of the right names, shapes and order.
//
//   kernels of ResNet-50:  conv1 -> bn1 -> relu1 -> maxpool -> layer1.0.conv1 -> ... -> fc -> loss
//
// The networks are those of paper 002 (6.2.1) in the form that torchvision has made common; their
// parameter counts are well known, and the tests compare with them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace forebay::nets {

struct Parameter {
  std::string name;  ///< "layer1.0.conv1.weight"
  std::vector<std::uint64_t> shape;

  std::uint64_t elements() const;
};

struct Kernel {
  std::string name;
  std::vector<std::size_t> needs;   ///< kernels before it
  std::uint64_t multiply_adds = 0;  ///< of one sample
  std::uint64_t moved = 0;          ///< numbers read and written, of one sample
  std::vector<Parameter> parameters;
};

/// Kernels stand behind those that they need; the last one is the loss.
struct Net {
  std::string name;
  std::uint64_t side = 224;  ///< of its input: 3 x side x side
  std::vector<Kernel> kernels;

  std::uint64_t parameters() const;
  std::uint64_t parameter_tensors() const;
  std::uint64_t multiply_adds() const;
};

/// "resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "alexnet", "googlenet",
/// "inception3", "vgg16": in the order of table 6.1.
const std::vector<std::string_view>& net_names();
/// Throws usage.
Net make_net(std::string_view name);

}  // namespace forebay::nets
