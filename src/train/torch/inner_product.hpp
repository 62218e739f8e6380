// A fully connected layer, computed as a convolution over images of one pixel.
//
// LibTorch hands convolutions to oneDNN but its Linear to the system's BLAS, which on Debian is the
// plain reference code unless an administrator chose another: four to six times slower.
#pragma once

#include <torch/nn.h>

namespace forebay {

class InnerProductImpl : public torch::nn::Module {
 public:
  InnerProductImpl(std::int64_t in, std::int64_t out)
      : product_(register_module("product", torch::nn::Conv2d(in, out, 1))) {}

  torch::Tensor forward(const torch::Tensor& x) {
    return product_->forward(x.flatten(1).unsqueeze(2).unsqueeze(3)).flatten(1);
  }

  torch::Tensor& weight() { return product_->weight; }
  torch::Tensor& bias() { return product_->bias; }

 private:
  torch::nn::Conv2d product_;
};
TORCH_MODULE(InnerProduct);

}  // namespace forebay
