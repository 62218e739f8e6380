// Steps that have not been done yet: what they come to, together.
//
//   source --box--> part --gray--> --resize--> image --window--> --rgb, swap, mirrors--> next image
//
// Crops before a resize cut the part that is read, crops after it the part that is computed.
#pragma once

#include <cstdint>

#include "format/codec/image_reader.hpp"

namespace forebay {

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

}  // namespace forebay
