#include "train/torch/torch_network.hpp"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "forebay/error.hpp"
#include "train/net_catalog.hpp"
#include "train/torch/models.hpp"

namespace forebay {
namespace {

using torch::Tensor;

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
      return torch::kInt16;
    case ElementType::f16:
      return torch::kFloat16;
    case ElementType::u16:
    case ElementType::u32:
    case ElementType::u64:
      break;
  }
  throw Error(ErrorKind::unsupported,
              fmt::format("LibTorch has no elements of type {}", to_string(type)),
              "store the field as u8, i8, i16, i32, i64, f16, f32 or f64");
}

std::int64_t as_signed(std::uint64_t n) { return static_cast<std::int64_t>(n); }

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
  return build_model(options.net, as_signed(options.input.channels), as_signed(options.classes));
}

class TorchNetwork final : public Network {
 public:
  explicit TorchNetwork(const NetworkOptions& options)
      : options_(options),
        net_(find_net(options.net)),
        fit_(fit_input(net_, options.input)),
        model_(seeded_model(options)) {
    const torch::NoGradGuard no_gradient;
    const std::vector<Tensor> weights = model_->parameters();
    std::vector<Tensor> running = model_->buffers();
    // What is left are means and variances: the counters of batch normalization are integers.
    std::erase_if(running, [](const Tensor& t) { return t.scalar_type() != torch::kFloat32; });
    const std::int64_t count = count_elements(weights);
    statistics_count_ = static_cast<std::size_t>(count_elements(running));
    parameters_ = torch::zeros({count});
    exchange_ = torch::zeros({count + as_signed(statistics_count_) + 1});
    lay_out(weights, parameters_, 0);
    lay_out(running, exchange_, count);
    attach_gradients(weights);
  }

  std::span<float> parameters() override { return span_of(parameters_); }
  std::span<float> exchange() override { return span_of(exchange_); }
  std::size_t statistics_count() const override { return statistics_count_; }

  float forward(const ImageBatch& batch, std::uint64_t noise) override {
    torch::manual_seed(noise);
    model_->train();
    loss_ = torch::cross_entropy_loss(model_->forward(input(batch)), targets(batch));
    return loss_.item<float>();
  }

  void backward() override {
    std::ranges::fill(gradients(), 0.0F);
    std::exchange(loss_, Tensor()).backward();
  }

  Score evaluate(const ImageBatch& batch) override {
    if (batch.labels.empty()) return {};
    const torch::InferenceMode inference;
    model_->eval();
    const Tensor outputs = model_->forward(input(batch));
    const Tensor labels = targets(batch);
    const Tensor losses =
        torch::cross_entropy_loss(outputs, labels, {}, at::Reduction::None).to(torch::kFloat64);
    const Tensor hits = outputs.argmax(1).eq(labels).sum();
    return {.loss = losses.sum().item<double>(),
            .correct = static_cast<std::uint64_t>(hits.item<std::int64_t>())};
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

  Tensor targets(const ImageBatch& batch) const {
    // from_blob asks for a pointer to non-const; nothing writes through it.
    return torch::from_blob(const_cast<std::int64_t*>(batch.labels.data()),
                            {as_signed(batch.labels.size())}, torch::kInt64);
  }

  Tensor input(const ImageBatch& batch) const {
    check(batch);
    const ImageShape& shape = batch.shape;
    Tensor pixels = torch::from_blob(const_cast<std::byte*>(batch.pixels.data()),
                                     {as_signed(batch.labels.size()), as_signed(shape.channels),
                                      as_signed(shape.height), as_signed(shape.width)},
                                     scalar_type(batch.type));
    if (fit_.resizes(shape)) {
      pixels = torch::upsample_bilinear2d(
          pixels.to(torch::kFloat32),
          {as_signed(fit_.resized_height), as_signed(fit_.resized_width)}, false);
    }
    pixels = pixels.narrow(2, as_signed(fit_.top), as_signed(net_.side))
                 .narrow(3, as_signed(fit_.left), as_signed(net_.side));
    return (pixels.to(torch::kFloat32) - options_.mean) * options_.scale;
  }

  void check(const ImageBatch& batch) const {
    if (batch.shape == options_.input &&
        batch.pixels.size() == batch.labels.size() * batch.shape.bytes() * size_of(batch.type)) {
      return;
    }
    throw Error(ErrorKind::usage,
                fmt::format("a batch of {} images of {} ({} bytes) for a network that was made for "
                            "images of {}",
                            batch.labels.size(), to_string(batch.shape), batch.pixels.size(),
                            to_string(options_.input)),
                "train and test on images of one shape");
  }

  NetworkOptions options_;
  NetInfo net_;
  InputFit fit_;
  torch::nn::Sequential model_;
  Tensor parameters_;
  Tensor exchange_;
  std::size_t statistics_count_ = 0;
  Tensor loss_;
};

}  // namespace

std::unique_ptr<Network> make_torch_network(const NetworkOptions& options) {
  return std::make_unique<TorchNetwork>(options);
}

void set_compute_threads(int threads) { torch::set_num_threads(threads); }

}  // namespace forebay
