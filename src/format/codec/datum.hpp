// Writing Caffe Datums. Reading them is the business of datum_codec.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "format/codec/image.hpp"

namespace forebay {

/// A Datum that holds the pixels of an image, as Caffe's conversion tools write it: `pixels` has
/// exactly shape.bytes() bytes. Throws usage when it has not, or when a side exceeds 2^31 - 1.
std::string make_datum(const ImageShape& shape, std::span<const std::byte> pixels,
                       std::optional<std::int32_t> label);

/// A Datum that holds a JPEG or PNG file; `shape` is what the file decodes to.
std::string make_encoded_datum(const ImageShape& shape, std::span<const std::byte> file,
                               std::optional<std::int32_t> label);

}  // namespace forebay
