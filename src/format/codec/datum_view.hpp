// A Caffe Datum seen in place: one pass over the stored value, no copy of its data.
//
//   value := field*        field := tag payload        tag := varint(number << 3 | wire type)
//   wire types: 0 varint, 1 eight bytes, 2 varint length + bytes, 5 four bytes
//
// This is a reader for the one message that datum.proto declares. It follows Protocol Buffers where
// a value may be written in several ways: the last of repeated single fields counts, floats may be
// packed or not, unknown fields are skipped. Groups, which no Datum has, are refused. Whatever it
// accepts, the generated parser accepts with the same result (tests and fuzzing hold it to that);
// it exists because that parser copies the data once more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

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

}  // namespace forebay
