// One training step of a network as operations of a graph, with the time each keeps a device busy.
//
//   variable -> read -> conv1 -> bn1 -> ... -> loss          forward: reads its parameters
//                         |                     |
//        grad <------- d_conv1 <- d_bn1 <- ... <+            backward: first towards the input,
//         |                                                  then for the parameters
//     allreduce -> update -> step                            one for each parameter tensor
//
// Operations stand in the order in which a framework dispatches them: each behind what it needs.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "forebay/graph.hpp"
#include "nets/net.hpp"

namespace forebay::nets {

enum class OperationKind : std::uint8_t {
  host,       ///< takes no time on the device
  kernel,     ///< forward, backward
  gradient,   ///< a kernel; with its end the gradient of `tensor` is ready
  allreduce,  ///< of `tensor`
  update,     ///< a kernel that needs the summed gradient of `tensor`
};

struct Operation {
  std::string name;  ///< of an allreduce: that of the parameter
  OperationKind kind = OperationKind::host;
  std::size_t tensor = 0;  ///< number in TrainingStep::tensors
  std::chrono::nanoseconds takes{0};
  std::vector<std::size_t> needs;
};

struct TrainingStep {
  std::vector<Operation> operations;
  std::vector<Parameter> tensors;  ///< in the order in which their gradients are ready

  std::chrono::nanoseconds device_time() const;
};

/// How fast a device is. The default is about what Summit's V100 do in mixed precision: 800 images
/// of ResNet-50 a second.
struct DeviceSpeed {
  double multiply_adds = 15e12;                 ///< a second
  double moved = 450e9;                         ///< numbers a second, from and to its memory
  std::chrono::nanoseconds least_kernel{5000};  ///< no kernel takes less
  double scale = 1;                             ///< factor of all times
};

TrainingStep make_step(const Net& net, std::uint64_t batch, const DeviceSpeed& speed);

/// Leaves one of `by` numbers of every gradient, rounded up. Accelerators sum gradients for
/// themselves; where cores do it for them, fewer numbers leave the cores what the papers' had.
void shrink_gradients(TrainingStep& step, std::uint64_t by);

/// What a framework would show of it: for topo, and to compare with table 6.1 of paper 002. Its one
/// fetch is the node "step".
GraphFile graph_of(const TrainingStep& step);

}  // namespace forebay::nets
