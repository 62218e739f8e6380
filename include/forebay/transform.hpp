// What is done with an image between its decoding and the batch: one line of text, the same on the
// command line, in LoaderOptions and in Python.
//
//   rgb,random-resized-crop=224,flip,to-float,normalize=0.485:0.456:0.406/0.229:0.224:0.225
//
//   transform := [FIELD ":"] step ("," step)*        steps are done in the order given
//
//   from=hwc                      first: the stored array is height, width, channel (not for files)
//   full-decode                   first: JPEG files are never decoded at a fraction of their size
//   orientation=stored            first: image files are not turned as their EXIF orientation says
//   palette=index                 first: of PNG, GIF, BMP and TIFF palettes the numbers, not colors
//   resize=S | resize=HxW         the shorter side becomes S, the other S * long / short, rounded
//                                 down; or both are given. Bilinear, averaging where it shrinks, as
//                                 torchvision does with antialias
//   crop=HxW[:center|:random]     a part of that size; center is the default
//   random-resized-crop=HxW[:A-B[:C-D]]
//                                 a random part, of A to B of the area (0.08-1) and an aspect ratio
//                                 of C to D (3/4 to 4/3), resized: torchvision's RandomResizedCrop
//   flip[=P] | vflip[=P]          left to right, or top to bottom, with probability P (0.5)
//   pad=N                         N pixels of 0 on each side
//   gray | rgb                    one channel of 0.299 R + 0.587 G + 0.114 B; three channels, a
//                                 gray one repeated. No change where it is so already. Where a
//                                 transform has one of them, files are read without transparency
//   swap                          R and B change places
//   to-float                      u8 to f32, divided by 255: torchvision's ToTensor
//   cast=TYPE                     numbers of another type, not scaled; integers are rounded to the
//                                 nearest (ties to even) and limited to their range
//   normalize=MEAN.../STD...      (value - mean) / std, of one number for all channels or of one a
//                                 channel, between ":"; for floating point types only
//   layout=chw | layout=hwc       last: the order of the output; chw is the default
//
// H, W and S are 1 to 65535, and "224" means 224x224 for the two crops. Steps fuse: a part that is
// cut out first is the only part of a JPEG file that is decoded, a crop after a resize the only
// part that is computed, and what follows the last change of shape is one pass over the output.
//
// Images are fields of channel, height, width (or height, width alone: gray) with 1 or 3 channels,
// of type u8, i8, u16, i16, f16, f32 or f64; or image files of any size, if the steps end in one
// shape. u8 images stay bytes, rounded after each step, up to the step that makes them
// something else; all others are computed in f32 and rounded to their type at the end. Sums are in
// a fixed order without fused operations: the same result on every machine, given the same libjpeg.
//
// JPEG: where a resize shrinks by 2, 4 or 8 or more in both directions, the file is decoded at 1/2,
// 1/4 or 1/8 of its size and resized from there; the result differs a little from that of a full
// decode, and is as deterministic. `full-decode` turns that off; files whose colors are
// halved one way only (4:2:2, 4:1:1) are decoded in full always. Rows below the part that is needed
// are not looked at, so damage there is not found.
//
// Random steps draw from the seed of a sample (Sample::seed()) alone, so a sample is augmented
// alike on any rank, thread or strategy. Number n of the k-th random step (both from 0) is
//
//   x(n) = mix(mix_key({seed, k}) + (n + 1) * 0x9E3779B97F4A7C15)       src/core/mix.hpp
//
// as a fraction u(n) = (x >> 11) / 2^53, as one of m integers floor(x * m / 2^64). In its order:
// flip, vflip: u(0) < P. crop: the top of m = H - h + 1, then the left. random-resized-crop: area
// and aspect of each of up to ten trials, then top and left.
//
// Transform is immutable and safe to use from many threads; each thread keeps memory to work in, of
// the size of the largest image so far up to 64 MiB. Everything is local. Errors are of kind usage
// for texts, fields and buffers that do not fit, and corrupt or unsupported for images that do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "forebay/dataset.hpp"

namespace forebay {

struct TransformSteps;

class Transform {
 public:
  /// Of no steps.
  Transform();
  /// Throws usage naming the step that is wrong, and what it takes.
  static Transform parse(std::string_view text);
  /// parse() reads it back; numbers that are defaults are left out.
  std::string to_text() const;

  /// Whether there are no steps.
  bool empty() const;
  /// The field that the text names; empty where it names none: "image", or the only one that may be
  /// an image.
  const std::string& field() const;

  /// What `input` becomes; the name stays. Throws usage naming the step and the shape that it does
  /// not fit.
  Field output(const Field& input) const;
  /// What the image of a file (JPEG, PNG and others) becomes, named "image". Throws as output(),
  /// and corrupt, unsupported.
  Field output_of_file(std::span<const std::byte> file) const;

  /// `image` has exactly input.bytes(), `out` output(input).bytes() bytes, aligned to anything.
  void apply(const Field& input, std::span<const std::byte> image, std::uint64_t seed,
             std::span<std::byte> out) const;
  /// The same of an image file; `out` has output_of_file(file).bytes() bytes.
  void apply_to_file(std::span<const std::byte> file, std::uint64_t seed,
                     std::span<std::byte> out) const;

 private:
  friend const TransformSteps& steps_of(const Transform& transform);
  explicit Transform(std::shared_ptr<const TransformSteps> steps) : steps_(std::move(steps)) {}

  std::shared_ptr<const TransformSteps> steps_;
};

}  // namespace forebay
