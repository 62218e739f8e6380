#include "format/codec/datum.hpp"

#include <datum.pb.h>
#include <fmt/format.h>

#include <limits>

#include "forebay/error.hpp"

namespace forebay {
namespace {

std::int32_t side(std::uint32_t size) {
  if (size > static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max())) {
    throw Error(ErrorKind::usage, fmt::format("an image side of {} does not fit a Datum", size));
  }
  return static_cast<std::int32_t>(size);
}

Datum shaped_datum(const ImageShape& shape, std::optional<std::int32_t> label) {
  Datum datum;
  datum.set_channels(side(shape.channels));
  datum.set_height(side(shape.height));
  datum.set_width(side(shape.width));
  if (label) datum.set_label(*label);
  return datum;
}

}  // namespace

std::string make_datum(const ImageShape& shape, std::span<const std::byte> pixels,
                       std::optional<std::int32_t> label) {
  if (pixels.size() != shape.bytes()) {
    throw Error(ErrorKind::usage,
                fmt::format("{} bytes are not an image of {}", pixels.size(), to_string(shape)));
  }
  Datum datum = shaped_datum(shape, label);
  datum.set_data(pixels.data(), pixels.size());
  return datum.SerializeAsString();
}

std::string make_encoded_datum(const ImageShape& shape, std::span<const std::byte> file,
                               std::optional<std::int32_t> label) {
  Datum datum = shaped_datum(shape, label);
  datum.set_data(file.data(), file.size());
  datum.set_encoded(true);
  return datum.SerializeAsString();
}

}  // namespace forebay
