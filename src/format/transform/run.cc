#include "format/transform/run.hpp"

#include <fmt/format.h>

#include "format/transform/draws.hpp"
#include "format/transform/workspace.hpp"

namespace forebay {
namespace {

/// One image on its way. Steps gather in `take_`; what cannot be gathered makes the image first.
class ImageRun {
 public:
  ImageRun(const TransformSteps& steps, std::uint64_t seed, PixelSource& source, ElementType type,
           Workspace& workspace)
      : steps_(steps),
        seed_(seed),
        workspace_(workspace),
        source_(&source),
        take_(Take::all_of(source.shape())),
        state_(state_of(source.shape())) {
    state_.type = type;
  }

  void run(const Field& output, std::span<std::byte> out) {
    for (std::size_t s = 0; s < steps_.tail; ++s) {
      before_ = state_;
      advance(state_, steps_.steps[s], ErrorKind::corrupt);
      std::visit(*this, steps_.steps[s]);
      if (is_random(steps_.steps[s])) ++random_steps_;
    }
    for (std::size_t s = steps_.tail; s < steps_.steps.size(); ++s) {
      advance(state_, steps_.steps[s], ErrorKind::corrupt);
    }
    require(output);
    write_output(steps_, made(), state_.type, out, workspace_.row());
  }

  // A step, `before_` being the image that it is done to.

  void operator()(const Resize&) { resize(state_.height, state_.width); }
  void operator()(const Crop& crop) {
    take_.crop(draw_crop(crop, before_.height, before_.width, draws()));
  }
  void operator()(const RandomResizedCrop& crop) {
    take_.crop(draw_crop(crop, before_.height, before_.width, draws()));
    resize(crop.height, crop.width);
  }
  void operator()(const Flip& flip) {
    if (!draw_flip(flip, draws())) return;
    bool& flipped = flip.vertical ? take_.upside_down : take_.mirrored;
    flipped = !flipped;
  }
  void operator()(const Pad& pad) {
    if (pad.by == 0) return;
    const PixelView image = made();
    const PixelView padded =
        workspace_.next_image({image.shape.channels, state_.height, state_.width}, image.floats);
    pad_pixels(image, pad.by, padded);
    go_on_from(padded);
  }
  void operator()(Channels channels) {
    if (channels == Channels::swap) {
      take_.swapped = !take_.swapped;
    } else if (channels == Channels::rgb) {
      take_.rgb = take_.rgb || before_.channels == 1;
    } else if (before_.channels == 3) {
      // Its place is before the resize, and red must be where it was.
      if (take_.resizes || take_.rgb || take_.swapped) go_on_from(made());
      take_.gray = true;
    }
  }
  void operator()(const ToFloat& step) { change_values(step); }
  void operator()(const Normalize& step) { change_values(step); }
  void operator()(const Cast& step) {
    change_values(step);
    if (step.type != ElementType::u8) return;
    const PixelView image = made();
    const PixelView bytes = workspace_.next_image(image.shape, false);
    make_bytes(image, bytes);
    go_on_from(bytes);
  }

 private:
  Draws draws() const { return {seed_, random_steps_}; }

  PixelView made() { return workspace_.make(take_, *source_); }

  void go_on_from(const PixelView& image) {
    image_ = ViewSource(image);
    source_ = &image_;
    take_ = Take::all_of(image.shape);
  }

  void resize(std::uint32_t height, std::uint32_t width) {
    if (take_.resizes) go_on_from(made());
    take_.resize(height, width);
  }

  /// Between steps that change the shape; those behind them are the tail's.
  void change_values(const Step& step) {
    const PixelView image = made();
    const PixelView floats = workspace_.next_image(image.shape, true);
    if (image.floats) {
      copy_pixels(image, floats);
    } else {
      make_floats(image, floats);
    }
    apply_to_pixels(step, floats, workspace_.row());
    go_on_from(floats);
  }

  void require(const Field& output) const {
    const Field found = field_of(state_, steps_.to_hwc, output.name);
    if (found == output) return;
    const bool channels = output.shape.size() == 3 && found.shape.size() == 3 &&
                          output.shape[steps_.to_hwc ? 2 : 0] != state_.channels;
    throw Error(ErrorKind::corrupt,
                fmt::format("the image becomes {} but those of the data set become {}",
                            to_string(Schema{{found}}), to_string(Schema{{output}})),
                found.type != output.type ? "let the transform end in one type, with cast=TYPE"
                : channels                ? "put rgb or gray first in the transform"
                                          : "let the transform end in one size, with resize=HxW or "
                                            "a crop");
  }

  const TransformSteps& steps_;
  std::uint64_t seed_;
  Workspace& workspace_;
  PixelSource* source_;
  ViewSource image_;
  Take take_;
  ImageState state_, before_;
  std::uint64_t random_steps_ = 0;
};

void run_on(const TransformSteps& steps, PixelSource& source, ElementType type, std::uint64_t seed,
            const Field& output, std::span<std::byte> out, Workspace& workspace) {
  ImageRun(steps, seed, source, type, workspace).run(output, out);
  workspace.shrink_to_limit();
}

}  // namespace

ImageShape image_shape_of(const Field& field, bool hwc) {
  require_image_type(field.type);
  std::vector<std::uint64_t> sides = field.shape;
  if (sides.size() == 2) sides.insert(hwc ? sides.end() : sides.begin(), 1);
  const bool image =
      sides.size() == 3 && field.elements() > 0 && field.elements() <= kMaxImageBytes;
  const std::uint64_t channels = image ? sides[hwc ? 2 : 0] : 0;
  if (channels == 1 || channels == 3) {
    return {static_cast<std::uint32_t>(channels), static_cast<std::uint32_t>(sides[hwc ? 0 : 1]),
            static_cast<std::uint32_t>(sides[hwc ? 1 : 2]), field.type};
  }
  throw Error(ErrorKind::usage,
              fmt::format("{} is no image that can be transformed", to_string(Schema{{field}})),
              "images are [CxHxW] with 1 or 3 channels, or [HxWxC] with the step from=hwc");
}

ImageState state_of(const ImageShape& shape) {
  return {
      .channels = shape.channels, .height = shape.height, .width = shape.width, .type = shape.type};
}

const ImageShape& checked_file(const ImageShape& shape) {
  try {
    require_image_type(shape.type);
  } catch (const Error& error) {  // one file among many says nothing of the request
    throw Error(ErrorKind::corrupt, error.happened(), error.remedy());
  }
  if (shape.channels == 1 || shape.channels == 3) return shape;
  const bool transparent = shape.channels == 2 || shape.channels == 4;
  throw Error(ErrorKind::corrupt,
              fmt::format("an image of {} has {}, which {} not transformed", to_string(shape),
                          transparent ? "transparency" : "more channels than colors",
                          transparent ? "is" : "are"),
              transparent ? "drop it with the step rgb or gray" : "read it without a transform");
}

Field field_of(const ImageState& state, bool hwc, const std::string& name) {
  if (hwc) return {name, state.type, {state.height, state.width, state.channels}};
  return {name, state.type, {state.channels, state.height, state.width}};
}

void run_on_file(const TransformSteps& steps, ImageReader& file, std::uint64_t seed,
                 const Field& output, std::span<std::byte> out) {
  Workspace& workspace = Workspace::of_this_thread();
  const ElementType type = checked_file(file.shape()).type;
  FileSource source(file, !steps.full_decode, workspace.file_memory());
  run_on(steps, source, type, seed, output, out, workspace);
}

void run_on_pixels(const TransformSteps& steps, const StoredPixels& pixels, std::uint64_t seed,
                   const Field& output, std::span<std::byte> out) {
  StoredSource source(pixels);
  run_on(steps, source, pixels.type, seed, output, out, Workspace::of_this_thread());
}

}  // namespace forebay
