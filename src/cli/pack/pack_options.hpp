// What `forebay pack` was asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "format/codec/image.hpp"

namespace forebay::pack {

enum class Origin : std::uint8_t { idx, cifar10, folder, raw, synthetic };
enum class Encoding : std::uint8_t { raw, jpeg, png };

struct Options {
  std::string source;
  std::string destination;
  Origin from = Origin::idx;
  Encoding encode = Encoding::raw;
  int quality = 95;                   ///< of JPEG, 1 to 100
  std::uint64_t commit_every = 1000;  ///< records in a transaction, as in Caffe's tools
  std::optional<std::uint64_t> count;
  std::optional<ImageShape> shape;
  std::string labels;           ///< file with the labels, for idx and raw
  std::string split = "train";  ///< which files of a directory: train or test
  std::string preset;           ///< of synthetic data
  std::uint64_t seed = 0;
  bool shuffle = false;  ///< folder: files in an order drawn from `seed`
  bool resume = false;
  bool force = false;
  bool json = false;
  bool provenance = true;  ///< write a sidecar beside the data
};

}  // namespace forebay::pack
