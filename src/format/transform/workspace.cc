#include "format/transform/workspace.hpp"

#include <algorithm>

namespace forebay {
namespace {

constexpr std::size_t kMostKept = std::size_t{64} << 20;

/// The largest power of 2 that leaves at least as many pixels as are wanted, in both directions.
unsigned shrink_for(const Take& take, unsigned most) {
  unsigned shrink = 1;
  while (shrink * 2 <= most && take.box.width / (shrink * 2) >= take.full_width &&
         take.box.height / (shrink * 2) >= take.full_height) {
    shrink *= 2;
  }
  return shrink;
}

/// One axis: `begin` and `length` of the part at full size, of `side` pixels in all.
AxisMap map_of(std::uint32_t begin, std::uint32_t length, std::uint32_t side, unsigned shrink) {
  return {.begin = static_cast<double>(begin) / shrink,
          .length = static_cast<double>(length) / shrink,
          .least = begin / shrink,
          .end = std::min(shrunk(begin + length, shrink), shrunk(side, shrink))};
}

}  // namespace

void FileSource::read(const Box& box, unsigned shrink, const PixelView& to) {
  if (!to.floats) return file_.read(box, shrink, {to.data, to.stride * to.shape.height}, spare_);
  StoredPixels pixels{.bytes = {}, .shape = file_.shape(), .type = file_.shape().type, .hwc = true};
  pixels.shape.height = box.height;
  pixels.shape.width = box.width;
  std::vector<std::byte> numbers(pixels.shape.bytes());
  file_.read(box, shrink, numbers, spare_);
  pixels.bytes = numbers;
  load_pixels(pixels, {0, 0, box.width, box.height}, to);
}

Workspace& Workspace::of_this_thread() {
  thread_local Workspace workspace;
  return workspace;
}

PixelView Workspace::next_image(const ImageShape& shape, bool floats) {
  last_ = 1 - last_;
  return image_in(images_[last_], shape, floats);
}

PixelView Workspace::make(const Take& take, PixelSource& source) {
  if (const auto view = source.view(); view && take.plain()) return view->part(take.box);
  PixelView image = take.resizes ? make_resized(take, source) : make_part(take, source);
  if (take.rgb && image.shape.channels == 1) {
    const PixelView color = next_image({3, image.shape.height, image.shape.width}, image.floats);
    make_color(image, color);
    image = color;
  }
  if (take.swapped) swap_red_and_blue(image);
  return image;
}

PixelView Workspace::make_part(const Take& take, PixelSource& source) {
  const ImageShape shape{source.shape().channels, take.box.height, take.box.width};
  PixelView image;
  if (take.gray && shape.channels == 3) {
    image = next_image({1, shape.height, shape.width}, source.floats());
    const PixelView color = image_in(part_, shape, source.floats());
    source.read(take.box, 1, color);
    make_gray(color, image);
  } else {
    image = next_image(shape, source.floats());
    source.read(take.box, 1, image);
  }
  if (take.mirrored) mirror(image);
  if (take.upside_down) turn_upside_down(image);
  return image;
}

PixelView Workspace::make_resized(const Take& take, PixelSource& source) {
  const unsigned shrink = shrink_for(take, source.most_shrink());
  set_weights(take, shrink, source.shape());
  const Box needed{columns_.least(), rows_.least(), columns_.end() - columns_.least(),
                   rows_.end() - rows_.least()};
  const PixelView part = pixels_of(take, needed, shrink, source);
  const PixelView image =
      next_image({part.shape.channels, take.window.height, take.window.width}, source.floats());
  resample(part, rows_, columns_, image, row_);
  return image;
}

void Workspace::set_weights(const Take& take, unsigned shrink, const ImageShape& whole) {
  AxisMap rows = map_of(take.box.y, take.box.height, whole.height, shrink);
  rows.output = take.full_height;
  rows.first = take.window.y;
  rows.count = take.window.height;
  rows.mirrored = take.upside_down;
  rows_.set(rows);
  AxisMap columns = map_of(take.box.x, take.box.width, whole.width, shrink);
  columns.output = take.full_width;
  columns.first = take.window.x;
  columns.count = take.window.width;
  columns.mirrored = take.mirrored;
  columns_.set(columns);
}

PixelView Workspace::pixels_of(const Take& take, const Box& box, unsigned shrink,
                               PixelSource& source) {
  const bool to_gray = take.gray && source.shape().channels == 3;
  PixelView part;
  if (const auto view = source.view()) {
    part = view->part(box);
  } else {
    part = image_in(part_, {source.shape().channels, box.height, box.width}, source.floats());
    source.read(box, shrink, part);
  }
  if (!to_gray) return part;
  const PixelView gray = image_in(gray_, {1, box.height, box.width}, source.floats());
  make_gray(part, gray);
  return gray;
}

void Workspace::shrink_to_limit() {
  for (Spare* spare : {&images_[0], &images_[1], &part_, &gray_, &file_}) {
    if (spare->size() > kMostKept) Spare().swap(*spare);
  }
}

}  // namespace forebay
