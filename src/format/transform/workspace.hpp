// The memory that one thread transforms images in, and how a Take is done in it.
#pragma once

#include <vector>

#include "format/transform/resample.hpp"
#include "format/transform/source.hpp"
#include "format/transform/take.hpp"

namespace forebay {

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
