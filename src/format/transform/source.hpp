// Where the pixels of a Take come from: a file, a stored array, or what the steps before have made.
#pragma once

#include <cstdint>
#include <optional>

#include "format/codec/image_reader.hpp"
#include "format/transform/pixels.hpp"

namespace forebay {

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
  unsigned most_shrink() const override { return may_shrink_ ? file_.most_shrink() : 1; }
  void read(const Box& box, unsigned shrink, const PixelView& to) override {
    file_.read(box, shrink, {to.data, to.stride * to.shape.height}, spare_);
  }

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

}  // namespace forebay
