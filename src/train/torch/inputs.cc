#include "train/torch/inputs.hpp"

#include <fmt/format.h>

#include <vector>

#include "forebay/error.hpp"

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

}  // namespace

Tensor view_inputs(const TrainingBatch& batch) {
  std::vector<std::int64_t> sizes{as_signed(batch.count)};
  for (const std::uint64_t side : batch.shape) sizes.push_back(as_signed(side));
  // from_blob asks for a pointer to non-const; nothing writes through it.
  const Tensor view =
      torch::from_blob(const_cast<std::byte*>(batch.inputs.data()), sizes, scalar_type(batch.type));
  // The upper half of u16 looks negative to i16.
  return batch.type == ElementType::u16 ? view.to(torch::kInt32).bitwise_and(0xffff) : view;
}

Tensor prepare_inputs(const NetInfo& net, const Tensor& inputs, const Shape& shape) {
  if (net.axes == 2) return cut(net, inputs, as_image(shape));
  Tensor values = inputs.to(torch::kFloat32);
  // Counts of matter spread over orders of magnitude.
  if (net.axes == 3 && !inputs.is_floating_point()) values = values.clamp_min(0).log1p();
  return channels_first(shape, net.axes) ? values : values.movedim(-1, 1).contiguous();
}

Shape prepared_shape(const NetInfo& net, const Shape& shape) {
  if (net.axes != 2) return with_channels_first(shape, net.axes);
  fit_input(net, as_image(shape));
  return {as_image(shape).channels, net.side, net.side};
}

}  // namespace forebay
