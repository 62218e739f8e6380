// From an image and its label to a stored value: a Caffe Datum of pixels, or of a JPEG or PNG file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cli/pack/pack_options.hpp"
#include "format/codec/resize.hpp"

namespace forebay::pack {

/// All images of a data set get one shape: the one of --shape, else that of the first image.
class ImageEncoder {
 public:
  explicit ImageEncoder(const Options& options);

  /// Throws corrupt when the image has another shape than the first one and none was asked for.
  std::string encode(Image image, std::optional<std::int32_t> label);

  /// For an image file. It is stored as it is where its format and shape are the wanted ones.
  std::string encode_file(std::span<const std::byte> file, std::optional<std::int32_t> label);

  /// What the values depend on, for Source::fingerprint().
  std::string fingerprint() const;

 private:
  ImageShape target(const ImageShape& found);

  Encoding encoding_;
  int quality_;
  std::optional<ImageShape> wanted_;
  std::optional<ImageShape> first_;
};

}  // namespace forebay::pack
