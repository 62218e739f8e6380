// Caffe's Datum, read in place in one pass over the stored value, and written.
//
//   number  field       wire type        number  field        wire type
//   1-3     channels,   0 (int32)        5       label        0 (int32)
//           height,                      6       float_data   5, or 2 where packed
//           width                        7       encoded      0 (bool)
//   4       data        2
//
// This is all of Protocol Buffers (format/codec/wire.hpp) that this one message needs. Where a
// value may be written in several ways, reading follows them: the last of repeated single fields
// counts, floats may be packed or not, unknown fields and groups are skipped. The parser and the
// writer that protoc generates for tests/support/datum/datum.proto accept the same values with the
// same result, and write the same bytes; tests and fuzzing hold the code here to that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "format/codec/image.hpp"

namespace forebay {

struct DatumView {
  std::optional<std::int32_t> channels;
  std::optional<std::int32_t> height;
  std::optional<std::int32_t> width;
  std::optional<std::int32_t> label;
  std::span<const std::byte> data;  ///< points into the value
  std::uint64_t floats = 0;         ///< how many float_data elements the value holds
  bool encoded = false;
};

/// The view lives as long as `value`. Throws corrupt when `value` is not a Datum message; says
/// nothing about whether its shape and data agree.
DatumView scan_datum(std::span<const std::byte> value);

/// Copies the float_data elements of a scanned `value` into `out`, which has exactly
/// DatumView::floats times four bytes.
void copy_floats(std::span<const std::byte> value, std::span<std::byte> out);

/// A Datum that holds the pixels of an image, as Caffe's conversion tools write it: `pixels` has
/// exactly shape.bytes() bytes. Throws usage when it has not, or when a side exceeds 2^31 - 1.
std::string make_datum(const ImageShape& shape, std::span<const std::byte> pixels,
                       std::optional<std::int32_t> label);

/// A Datum that holds a JPEG or PNG file; `shape` is what the file decodes to.
std::string make_encoded_datum(const ImageShape& shape, std::span<const std::byte> file,
                               std::optional<std::int32_t> label);

}  // namespace forebay
