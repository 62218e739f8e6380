// The memory that one thread transforms images in, and how a Take is done in it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/codec/image_reader.hpp"
#include "format/transform/pixels.hpp"
#include "format/transform/resample.hpp"

namespace forebay {

// Steps that have not been done yet: what they come to, together.
//
//   source --box--> part --gray--> --resize--> image --window--> --rgb, swap, mirrors--> next image
//
// Crops before a resize cut the part that is read, crops after it the part that is computed.

struct Take {
  Box box;            ///< of the source
  bool gray = false;  ///< before the resize
  bool resizes = false;
  std::uint32_t full_height = 0, full_width = 0;  ///< to which the box is resized
  Box window;                                     ///< of that
  bool rgb = false, swapped = false;
  bool mirrored = false, upside_down = false;

  static Take all_of(const ImageShape& shape) {
    Take take;
    take.box = {0, 0, shape.width, shape.height};
    return take;
  }

  std::uint32_t height() const { return resizes ? window.height : box.height; }
  std::uint32_t width() const { return resizes ? window.width : box.width; }
  /// Nothing but a part.
  bool plain() const { return !gray && !resizes && !rgb && !swapped && !mirrored && !upside_down; }

  /// `part` of what it comes to so far.
  void crop(Box part) {
    if (mirrored) part.x = width() - part.x - part.width;
    if (upside_down) part.y = height() - part.y - part.height;
    Box& cut = resizes ? window : box;
    cut = {cut.x + part.x, cut.y + part.y, part.width, part.height};
  }
  /// Not if it resizes already.
  void resize(std::uint32_t to_height, std::uint32_t to_width) {
    if (to_height == box.height && to_width == box.width) return;
    resizes = true;
    full_height = to_height;
    full_width = to_width;
    window = {0, 0, to_width, to_height};
  }
};

// Where the pixels of a Take come from: a file, a stored array, or what the steps before have made.

class PixelSource {
 public:
  virtual ~PixelSource() = default;
  virtual ImageShape shape() const = 0;
  virtual bool floats() const { return false; }
  virtual unsigned most_shrink() const { return 1; }
  /// The pixels where they lie, not to be changed, if they need no reading.
  virtual std::optional<PixelView> view() const { return std::nullopt; }
  /// `box` of the image at 1 / shrink of its size into `to`, which has no gaps.
  virtual void read(const Box& box, unsigned shrink, const PixelView& to) = 0;
};

class FileSource final : public PixelSource {
 public:
  FileSource(ImageReader& file, bool may_shrink, Spare& spare)
      : file_(file), may_shrink_(may_shrink), spare_(spare) {}
  ImageShape shape() const override { return file_.shape(); }
  bool floats() const override { return file_.shape().type != ElementType::u8; }
  unsigned most_shrink() const override { return may_shrink_ ? file_.most_shrink() : 1; }
  void read(const Box& box, unsigned shrink, const PixelView& to) override;

 private:
  ImageReader& file_;
  bool may_shrink_;
  Spare& spare_;
};

class StoredSource final : public PixelSource {
 public:
  explicit StoredSource(const StoredPixels& pixels) : pixels_(pixels) {}
  ImageShape shape() const override { return pixels_.shape; }
  bool floats() const override { return pixels_.type != ElementType::u8; }
  void read(const Box& box, unsigned, const PixelView& to) override {
    load_pixels(pixels_, box, to);
  }

 private:
  StoredPixels pixels_;
};

class ViewSource final : public PixelSource {
 public:
  ViewSource() = default;
  explicit ViewSource(const PixelView& image) : image_(image) {}
  ImageShape shape() const override { return image_.shape; }
  bool floats() const override { return image_.floats; }
  std::optional<PixelView> view() const override { return image_; }
  void read(const Box& box, unsigned, const PixelView& to) override {
    copy_pixels(image_.part(box), to);
  }

 private:
  PixelView image_;
};

/// Belongs to one thread. Holds at most two images that the steps have made: the last one, and the
/// one that becomes the next.
class Workspace {
 public:
  /// This thread's own: allocating pages anew for every sample would cost as much as resizing it.
  static Workspace& of_this_thread();

  /// Does `take` to `source`, which may be the image that was made last. The result is valid until
  /// the next but one is made.
  PixelView make(const Take& take, PixelSource& source);
  /// Room for the next image.
  PixelView next_image(const ImageShape& shape, bool floats);

  Spare& file_memory() { return file_; }
  std::vector<float>& row() { return row_; }
  /// Gives back memory beyond what one thread should keep.
  void shrink_to_limit();

 private:
  PixelView make_resized(const Take& take, PixelSource& source);
  PixelView make_part(const Take& take, PixelSource& source);
  PixelView pixels_of(const Take& take, const Box& box, unsigned shrink, PixelSource& source);
  void set_weights(const Take& take, unsigned shrink, const ImageShape& whole);

  Spare images_[2];
  unsigned last_ = 0;
  Spare part_, gray_, file_;
  AxisWeights rows_, columns_;
  std::vector<float> row_;
};

}  // namespace forebay
