#include "train/torch/torch_network.hpp"

#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "forebay/error.hpp"
#include "train/net_catalog.hpp"
#include "train/torch/models.hpp"

namespace forebay {
namespace {

using torch::Tensor;

/// LibTorch's sizes are signed.
std::int64_t as_signed(std::uint64_t n) { return static_cast<std::int64_t>(n); }

torch::ScalarType scalar_type(ElementType type) {
  switch (type) {
    case ElementType::u8:
      return torch::kUInt8;
    case ElementType::i32:
      return torch::kInt32;
    case ElementType::i64:
      return torch::kInt64;
    case ElementType::f32:
      return torch::kFloat32;
    case ElementType::f64:
      return torch::kFloat64;
    case ElementType::i8:
      return torch::kInt8;
    case ElementType::i16:
    case ElementType::u16:
      return torch::kInt16;
    case ElementType::f16:
      return torch::kFloat16;
    case ElementType::u32:
    case ElementType::u64:
      break;
  }
  throw Error(ErrorKind::unsupported,
              fmt::format("LibTorch has no elements of type {}", to_string(type)),
              "store the field as u8, u16, i8, i16, i32, i64, f16, f32 or f64");
}

Tensor cut(const NetInfo& net, Tensor pixels, const ImageShape& image) {
  const InputFit fit = fit_input(net, image);
  if (fit.resizes(image)) {
    pixels = torch::upsample_bilinear2d(
        pixels.to(torch::kFloat32), {as_signed(fit.resized_height), as_signed(fit.resized_width)},
        false);
  }
  return pixels.narrow(2, as_signed(fit.top), as_signed(net.side))
      .narrow(3, as_signed(fit.left), as_signed(net.side))
      .to(torch::kFloat32);
}

/// The inputs of a batch as a tensor of their own type, samples first; a view of them, except for
/// types that LibTorch lacks. Throws unsupported (u32, u64).
Tensor view_inputs(const TrainingBatch& batch) {
  std::vector<std::int64_t> sizes{as_signed(batch.count)};
  for (const std::uint64_t side : batch.shape) sizes.push_back(as_signed(side));
  // from_blob asks for a pointer to non-const; nothing writes through it.
  const Tensor view =
      torch::from_blob(const_cast<std::byte*>(batch.inputs.data()), sizes, scalar_type(batch.type));
  // The upper half of u16 looks negative to i16.
  return batch.type == ElementType::u16 ? view.to(torch::kInt32).bitwise_and(0xffff) : view;
}

/// Inputs as floats, channels first: images cut to the network's size, cubes of counts as
/// logarithms. Mean and scale are not applied yet. Throws unsupported for shapes that do not fit.
Tensor prepare_inputs(const NetInfo& net, const Tensor& inputs, const Shape& shape) {
  if (net.axes == 2) return cut(net, inputs, as_image(shape));
  Tensor values = inputs.to(torch::kFloat32);
  // Counts of matter spread over orders of magnitude.
  if (net.axes == 3 && !inputs.is_floating_point()) values = values.clamp_min(0).log1p();
  return channels_first(shape, net.axes) ? values : values.movedim(-1, 1).contiguous();
}

/// What one sample then has: channels first. Throws likewise.
Shape prepared_shape(const NetInfo& net, const Shape& shape) {
  if (net.axes != 2) return with_channels_first(shape, net.axes);
  fit_input(net, as_image(shape));
  return {as_image(shape).channels, net.side, net.side};
}

// Moves the storage of tensors into one flat array: each becomes a view of its slice. The modules
// keep working, since they hold the same tensor objects.
std::int64_t lay_out(const std::vector<Tensor>& tensors, const Tensor& flat, std::int64_t at) {
  for (Tensor tensor : tensors) {
    const Tensor view = flat.narrow(0, at, tensor.numel()).view(tensor.sizes());
    view.copy_(tensor);
    tensor.set_data(view);
    at += view.numel();
  }
  return at;
}

std::int64_t count_elements(const std::vector<Tensor>& tensors) {
  std::int64_t count = 0;
  for (const Tensor& tensor : tensors) count += tensor.numel();
  return count;
}

std::span<float> span_of(const Tensor& flat) {
  return {flat.data_ptr<float>(), static_cast<std::size_t>(flat.numel())};
}

torch::nn::Sequential seeded_model(const NetworkOptions& options) {
  torch::manual_seed(options.seed);
  return build_model(options.net, prepared_shape(find_net(options.net), options.input),
                     as_signed(options.outputs));
}

class TorchNetwork final : public Network {
 public:
  explicit TorchNetwork(const NetworkOptions& options)
      : options_(options), net_(find_net(options.net)), model_(seeded_model(options)) {
    const torch::NoGradGuard no_gradient;
    const std::vector<Tensor> weights = model_->parameters();
    std::vector<Tensor> running = model_->buffers();
    // What is left are means and variances: the counters of batch normalization are integers.
    std::erase_if(running, [](const Tensor& t) { return t.scalar_type() != torch::kFloat32; });
    const std::int64_t count = count_elements(weights);
    statistics_count_ = static_cast<std::size_t>(count_elements(running));
    parameters_ = torch::zeros({count});
    exchange_ = torch::zeros({count + as_signed(statistics_count_ + kExchangeTail)});
    lay_out(weights, parameters_, 0);
    lay_out(running, exchange_, count);
    attach_gradients(weights);
    watch_gradients(weights);
    name_parts();
  }

  std::span<float> parameters() override { return span_of(parameters_); }
  std::span<float> exchange() override { return span_of(exchange_); }
  std::size_t statistics_count() const override { return statistics_count_; }
  std::span<const Part> parts() const override { return parts_; }

  float forward(const TrainingBatch& batch, std::uint64_t noise) override {
    torch::manual_seed(noise);
    model_->train();
    const Tensor outputs = model_->forward(input(batch));
    loss_ = net_.task == Task::classify ? torch::cross_entropy_loss(outputs, labels(batch))
                                        : torch::mse_loss(outputs, targets(batch));
    return loss_.item<float>();
  }

  void backward(const BackwardPass& pass) override {
    if (!pass.add) std::ranges::fill(gradients(), 0.0F);
    ready_ = pass.ready;
    final_.assign(parts_.size(), false);
    std::exchange(loss_, Tensor()).backward(torch::full({}, pass.weight));
    // Not all parts need take part in a pass.
    for (std::size_t part = 0; part < parts_.size(); ++part) tell(part);
    ready_ = {};
  }

  Score evaluate(const TrainingBatch& batch) override {
    if (batch.count == 0) return {};
    const torch::InferenceMode inference;
    model_->eval();
    const Tensor outputs = model_->forward(input(batch));
    return net_.task == Task::classify ? score_of_classes(outputs, labels(batch))
                                       : score_of_numbers(outputs, targets(batch));
  }

 private:
  // Autograd adds into gradients that exist, so they stay where the solver and the all-reduce
  // look for them.
  void attach_gradients(const std::vector<Tensor>& weights) {
    std::int64_t at = 0;
    for (const Tensor& weight : weights) {
      weight.mutable_grad() = exchange_.narrow(0, at, weight.numel()).view(weight.sizes());
      at += weight.numel();
    }
  }

  // Autograd calls the hook of a parameter's accumulator after it has added the gradient. The
  // accumulators live as long as somebody holds them.
  void watch_gradients(const std::vector<Tensor>& weights) {
    using torch::autograd::variable_list;
    for (std::size_t part = 0; part < weights.size(); ++part) {
      accumulators_.push_back(torch::autograd::impl::grad_accumulator(weights[part]));
      accumulators_.back()->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
          [this, part](const variable_list& outputs, const variable_list&) {
            tell(part);
            return outputs;
          }));
    }
  }

  void tell(std::size_t part) {
    if (!ready_ || final_[part]) return;
    final_[part] = true;
    ready_(part);
  }

  void name_parts() {
    std::size_t offset = 0;
    for (const auto& weight : model_->named_parameters()) {
      const auto sizes = weight.value().sizes();
      parts_.push_back(
          {.name = weight.key(), .offset = offset, .shape = {sizes.begin(), sizes.end()}});
      offset += parts_.back().size();
    }
  }

  static Score score_of_classes(const Tensor& outputs, const Tensor& labels) {
    const Tensor losses =
        torch::cross_entropy_loss(outputs, labels, {}, at::Reduction::None).to(torch::kFloat64);
    const Tensor hits = outputs.argmax(1).eq(labels).sum();
    return {.loss = losses.sum().item<double>(),
            .correct = static_cast<std::uint64_t>(hits.item<std::int64_t>())};
  }

  static Score score_of_numbers(const Tensor& outputs, const Tensor& targets) {
    const Tensor errors = (outputs - targets).to(torch::kFloat64).square();
    return {.loss = errors.mean(1).sum().item<double>(), .correct = 0};
  }

  // from_blob asks for a pointer to non-const; nothing writes through it.
  Tensor labels(const TrainingBatch& batch) const {
    return torch::from_blob(const_cast<std::int64_t*>(batch.labels.data()),
                            {as_signed(batch.count)}, torch::kInt64);
  }

  Tensor targets(const TrainingBatch& batch) const {
    return torch::from_blob(const_cast<float*>(batch.targets.data()),
                            {as_signed(batch.count), as_signed(options_.outputs)});
  }

  Tensor input(const TrainingBatch& batch) const {
    check(batch);
    const Tensor values = prepare_inputs(net_, view_inputs(batch), batch.shape);
    return (values - options_.mean) * options_.scale;
  }

  void check(const TrainingBatch& batch) const {
    const std::uint64_t answers =
        net_.task == Task::classify ? batch.labels.size() : batch.targets.size() / options_.outputs;
    if (batch.shape == options_.input && batch.count == answers &&
        batch.inputs.size() == batch.count * elements_of(batch.shape) * size_of(batch.type)) {
      return;
    }
    throw Error(ErrorKind::usage,
                fmt::format("a batch of {} samples of {} ({} bytes) for a network that was made "
                            "for samples of {}",
                            batch.count, to_string(batch.shape), batch.inputs.size(),
                            to_string(options_.input)),
                "train and test on samples of one shape");
  }

  NetworkOptions options_;
  NetInfo net_;
  torch::nn::Sequential model_;
  Tensor parameters_;
  Tensor exchange_;
  std::size_t statistics_count_ = 0;
  Tensor loss_;
  std::vector<Part> parts_;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;  ///< by part
  GradientListener ready_;   ///< of the backward pass that runs,
  std::vector<bool> final_;  ///< and the parts that it has told of
};

}  // namespace

std::unique_ptr<Network> make_torch_network(const NetworkOptions& options) {
  return std::make_unique<TorchNetwork>(options);
}

void set_compute_threads(int threads) { torch::set_num_threads(threads); }

}  // namespace forebay
