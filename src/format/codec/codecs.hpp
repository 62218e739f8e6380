// The codecs behind make_codec(), one factory a kind. A factory fixes the schema, from the declared
// one or from the first value; from then on every value must fit it.
#pragma once

#include <memory>
#include <span>

#include "forebay/dataset.hpp"
#include "format/codec/image.hpp"

namespace forebay {

using CodecPtr = std::shared_ptr<const Codec>;

/// Caffe Datums like `first_value`. Throws corrupt.
CodecPtr make_datum_codec(std::span<const std::byte> first_value);
/// JPEG or PNG files like `first_value`. Throws corrupt, unsupported.
CodecPtr make_image_codec(std::span<const std::byte> first_value);
/// The bytes of the fields of `schema`, one after the other. Throws usage when it has no fields.
CodecPtr make_raw_codec(Schema schema);
/// Values that stay as they are: no fields, decode() does nothing.
CodecPtr make_bytes_codec();

/// Whether `value` is a Datum whose shape and data agree.
bool looks_like_datum(std::span<const std::byte> value);

/// {"image", type, {channels, height, width}}
Field image_field(const ImageShape& shape, ElementType type = ElementType::u8);

/// Throws corrupt: a value of zero bytes holds no fields.
void check_not_empty(std::span<const std::byte> value);
/// Throws usage unless `fields` are buffers of exactly the sizes that `schema` asks for.
void check_buffers(const Schema& schema, std::span<const std::span<std::byte>> fields);

}  // namespace forebay
