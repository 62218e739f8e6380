// Resizing, for training: bilinear, with the triangle as wide as an output pixel where the image
// shrinks (Pillow's BILINEAR, torchvision's antialias=True).
//
//   rows of the part --columns' weights down--> one row of floats --rows' weights across--> a row
//
// Each output row sums the input rows that it covers, then each of its pixels the columns. Sums are
// floats in a fixed order, so that results are the same wherever floats are IEEE's and operations
// are not fused. Only the output pixels that are wanted are computed, mirrored if need be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/transform/pixels.hpp"

namespace forebay {

/// One axis of a resize. All in pixels of the input as it is there, which may be shrunk already.
struct AxisMap {
  double begin = 0;  ///< the part of the input that becomes the whole output
  double length = 0;
  std::uint32_t least = 0;  ///< input pixels that may be used: those of the part
  std::uint32_t end = 0;
  std::uint32_t output = 0;  ///< pixels of the whole output
  std::uint32_t first = 0;   ///< those that are wanted
  std::uint32_t count = 0;
  bool mirrored = false;
};

/// Which input pixels each wanted output pixel is made of, and their weights. Used again for image
/// after image.
class AxisWeights {
 public:
  void set(const AxisMap& map);

  /// The input pixels that are needed in all.
  std::uint32_t least() const { return least_; }
  std::uint32_t end() const { return end_; }
  std::size_t size() const { return firsts_.size(); }
  std::uint32_t first(std::size_t i) const { return firsts_[i]; }
  std::span<const float> weights(std::size_t i) const {
    return {weights_.data() + i * stride_, counts_[i]};
  }

 private:
  void set_pixel(const AxisMap& map, std::size_t i);

  std::vector<std::uint32_t> firsts_, counts_;
  std::vector<float> weights_;
  std::size_t stride_ = 0;
  std::uint32_t least_ = 0, end_ = 0;
};

/// `part` is what lies in [least(), end()) of both axes; `out` has as many rows and columns as they
/// have weights. Both have the same channels and are of floats or bytes, which are rounded.
/// `row` is memory to work in.
void resample(const PixelView& part, const AxisWeights& rows, const AxisWeights& columns,
              const PixelView& out, std::vector<float>& row);

}  // namespace forebay
