// From decoded samples to what the first layer takes. Only files of this folder include LibTorch.
#pragma once

#include <torch/nn.h>

#include "train/net_catalog.hpp"

namespace forebay {

/// LibTorch's sizes are signed.
inline std::int64_t as_signed(std::uint64_t n) { return static_cast<std::int64_t>(n); }

/// The inputs of a batch as a tensor of their own type, samples first; a view of them, except for
/// types that LibTorch lacks. Throws unsupported (u32, u64).
torch::Tensor view_inputs(const TrainingBatch& batch);

/// Inputs as floats, channels first: images cut to the network's size, cubes of counts as
/// logarithms. Mean and scale are not applied yet. Throws unsupported for shapes that do not fit.
torch::Tensor prepare_inputs(const NetInfo& net, const torch::Tensor& inputs, const Shape& shape);

/// What one sample then has: channels first. Throws likewise.
Shape prepared_shape(const NetInfo& net, const Shape& shape);

}  // namespace forebay
