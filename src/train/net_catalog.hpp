// The networks that the trainer offers, and with which settings each is usually trained.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "format/codec/image.hpp"
#include "train/network.hpp"
#include "train/solver.hpp"

namespace forebay {

struct NetInfo {
  std::string_view name;
  std::string_view summary;
  Task task;
  int axes;               ///< of space or time: 2 for images
  std::uint64_t side;     ///< height and width of its images; 0: takes any size
  std::uint64_t classes;  ///< when not given; networks that regress have one output a target
  float mean;             ///< see NetworkOptions; of 8-bit pixels, of logarithms of counts
  float scale;
  SolverKind solver;
  double rate;
  double momentum;
  double weight_decay;
};

std::span<const NetInfo> net_catalog();

/// Throws usage, listing the names there are.
const NetInfo& find_net(std::string_view name);

/// Channel, height and width of an input that is an image: a shape of three, or of two for one
/// channel. Throws unsupported for other shapes, and for sides beyond a million.
ImageShape as_image(const Shape& shape);

/// How an image becomes an input of the network: enlarged (bilinear) where a side is too short,
/// then its centre is cut out. Nothing is random, so that every run sees the same numbers.
struct InputFit {
  std::uint64_t resized_height = 0;  ///< after enlarging; the image's own height if it fits
  std::uint64_t resized_width = 0;
  std::uint64_t top = 0;  ///< where the cut begins
  std::uint64_t left = 0;
  bool resizes(const ImageShape& image) const {
    return resized_height != image.height || resized_width != image.width;
  }
};

/// Throws unsupported, naming both sizes, for images that would have to grow more than
/// kLargestGrowth times.
InputFit fit_input(const NetInfo& net, const ImageShape& image);

inline constexpr std::uint64_t kLargestGrowth = 16;

}  // namespace forebay
