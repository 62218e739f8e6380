#include "nets/training_step.hpp"

#include <algorithm>

namespace forebay::nets {
namespace {

class StepBuilder {
 public:
  StepBuilder(const Net& net, std::uint64_t batch, const DeviceSpeed& speed)
      : net_(net), batch_(static_cast<double>(batch)), speed_(speed) {}

  TrainingStep build() && {
    variables();
    for (std::size_t i = 0; i < net_.kernels.size(); ++i) forward(i);
    for (std::size_t i = net_.kernels.size(); i-- > 0;) backward(i);
    updates();
    return std::move(step_);
  }

 private:
  /// What belongs to one parameter tensor, by operation numbers.
  struct Tensor {
    std::size_t variable = 0;
    std::size_t read = 0;
    std::size_t momentum = 0;
    std::size_t allreduce = 0;
  };

  std::size_t add(Operation operation) {
    step_.operations.push_back(std::move(operation));
    return step_.operations.size() - 1;
  }

  std::chrono::nanoseconds takes(double multiply_adds, double moved) const {
    const double seconds = multiply_adds / speed_.multiply_adds + moved / speed_.moved;
    const double least = static_cast<double>(speed_.least_kernel.count());
    return std::chrono::nanoseconds(
        static_cast<std::int64_t>(std::max(seconds * 1e9, least) * speed_.scale));
  }

  std::chrono::nanoseconds takes(const Kernel& kernel) const {
    return takes(batch_ * static_cast<double>(kernel.multiply_adds),
                 batch_ * static_cast<double>(kernel.moved));
  }

  void variables() {
    for (const Kernel& kernel : net_.kernels) {
      std::vector<Tensor> tensors;
      for (const Parameter& parameter : kernel.parameters) {
        Tensor tensor;
        tensor.variable = add({.name = parameter.name + "/variable"});
        tensor.momentum = add({.name = parameter.name + "/momentum"});
        tensor.read = add({.name = parameter.name + "/read", .needs = {tensor.variable}});
        tensors.push_back(tensor);
      }
      tensors_.push_back(std::move(tensors));
    }
  }

  void forward(std::size_t i) {
    const Kernel& kernel = net_.kernels[i];
    Operation operation{.name = kernel.name, .kind = OperationKind::kernel, .takes = takes(kernel)};
    for (const std::size_t before : kernel.needs) operation.needs.push_back(forward_[before]);
    for (const Tensor& tensor : tensors_[i]) operation.needs.push_back(tensor.read);
    forward_.push_back(add(std::move(operation)));
    users_.emplace_back();
    for (const std::size_t before : kernel.needs) users_[before].push_back(i);
  }

  // Users stand behind what they use, so their backward kernels are there already.
  void backward(std::size_t i) {
    const Kernel& kernel = net_.kernels[i];
    if (backward_.empty()) backward_.resize(net_.kernels.size());
    Operation operation{
        .name = "d_" + kernel.name, .kind = OperationKind::kernel, .takes = takes(kernel)};
    operation.needs.push_back(forward_[i]);
    for (const std::size_t user : users_[i]) operation.needs.push_back(backward_[user]);
    for (const Tensor& tensor : tensors_[i]) operation.needs.push_back(tensor.read);
    backward_[i] = add(std::move(operation));
    for (std::size_t p = 0; p < kernel.parameters.size(); ++p) gradient(i, p);
  }

  // The gradient of the weights costs what the kernel does; that of a bias is a sum.
  void gradient(std::size_t i, std::size_t p) {
    const Kernel& kernel = net_.kernels[i];
    const Parameter& parameter = kernel.parameters[p];
    const std::size_t number = step_.tensors.size();
    step_.tensors.push_back(parameter);
    const std::size_t made = add(
        {.name = parameter.name + "/gradient",
         .kind = OperationKind::gradient,
         .tensor = number,
         .takes = p == 0 ? takes(kernel) : takes(0, batch_ * static_cast<double>(kernel.moved) / 2),
         .needs = {backward_[i]}});
    tensors_[i][p].allreduce = add({.name = parameter.name,
                                    .kind = OperationKind::allreduce,
                                    .tensor = number,
                                    .needs = {made}});
  }

  void updates() {
    Operation end{.name = "step"};
    std::size_t number = 0;
    for (std::size_t i = net_.kernels.size(); i-- > 0;) {
      for (std::size_t p = 0; p < tensors_[i].size(); ++p) {
        const Tensor& tensor = tensors_[i][p];
        const Parameter& parameter = net_.kernels[i].parameters[p];
        end.needs.push_back(add({.name = parameter.name + "/update",
                                 .kind = OperationKind::update,
                                 .tensor = number++,
                                 .takes = takes(0, 4 * static_cast<double>(parameter.elements())),
                                 .needs = {tensor.allreduce, tensor.variable, tensor.momentum}}));
      }
    }
    add(std::move(end));
  }

  const Net& net_;
  const double batch_;
  const DeviceSpeed speed_;
  TrainingStep step_;
  std::vector<std::vector<Tensor>> tensors_;  // by kernel
  std::vector<std::size_t> forward_;          // by kernel: its operations
  std::vector<std::size_t> backward_;
  std::vector<std::vector<std::size_t>> users_;
};

}  // namespace

std::chrono::nanoseconds TrainingStep::device_time() const {
  std::chrono::nanoseconds sum{0};
  for (const Operation& operation : operations) sum += operation.takes;
  return sum;
}

TrainingStep make_step(const Net& net, std::uint64_t batch, const DeviceSpeed& speed) {
  return StepBuilder(net, batch, speed).build();
}

void shrink_gradients(TrainingStep& step, std::uint64_t by) {
  if (by <= 1) return;
  for (Parameter& tensor : step.tensors) tensor.shape = {(tensor.elements() + by - 1) / by};
}

GraphFile graph_of(const TrainingStep& step) {
  GraphFile file;
  for (const Operation& operation : step.operations) {
    GraphNode node{.name = operation.name};
    if (operation.kind == OperationKind::allreduce) {
      node.collective = true;
      node.reduction = Reduction::mean;
      node.shape = step.tensors[operation.tensor].shape;
    }
    const std::size_t number = file.graph.add(std::move(node));
    for (const std::size_t needed : operation.needs) file.graph.connect(needed, number);
  }
  file.fetches = {"step"};
  return file;
}

}  // namespace forebay::nets
