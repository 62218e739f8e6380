// The networks that the trainer offers, and with which settings each is usually trained.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "train/network.hpp"

namespace forebay {

struct NetInfo {
  std::string_view name;
  std::string_view summary;
  std::uint64_t side;     ///< height and width of its input
  std::uint64_t classes;  ///< when not given
  float mean;             ///< of 8-bit pixels, see NetworkOptions
  float scale;
  double rate;
  double momentum;
  double weight_decay;
};

std::span<const NetInfo> net_catalog();

/// Throws usage, listing the names there are.
const NetInfo& find_net(std::string_view name);

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
