// Caffe Datums: "image" as bytes or floats, and "label" when the first value carries one.
//
// What a Datum says of itself is checked before use: a shape must be three positive numbers whose
// product is the amount of data. For an encoded image the file's own header is the truth, as in
// Caffe, whose tools leave the Datum's shape out.
#include <fmt/format.h>

#include <cstring>

#include "forebay/error.hpp"
#include "format/codec/codecs.hpp"
#include "format/codec/datum.hpp"

namespace forebay {
namespace {

constexpr const char* kRepack = "pack the data set again, or read it with --codec bytes";

std::uint64_t checked_side(const char* name, std::optional<std::int32_t> side) {
  if (!side) throw Error(ErrorKind::corrupt, fmt::format("the Datum has no {}", name), kRepack);
  if (*side <= 0) {
    throw Error(ErrorKind::corrupt, fmt::format("the Datum has a {} of {}", name, *side), kRepack);
  }
  return static_cast<std::uint64_t>(*side);
}

// Divides rather than multiplies: three factors below 2^31 may exceed 64 bits.
bool product_is(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t total) {
  return total % (a * b) == 0 && total / (a * b) == c;
}

Field plain_image(const DatumView& datum) {
  const std::uint64_t channels = checked_side("channels", datum.channels);
  const std::uint64_t height = checked_side("height", datum.height);
  const std::uint64_t width = checked_side("width", datum.width);
  const bool bytes = !datum.data.empty();
  const std::uint64_t held = bytes ? datum.data.size() : datum.floats;
  if (!product_is(channels, height, width, held)) {
    throw Error(ErrorKind::corrupt,
                fmt::format("the Datum says {}x{}x{} but holds {} {}", channels, height, width,
                            held, bytes ? "bytes" : "floats"),
                kRepack);
  }
  return {"image", bytes ? ElementType::u8 : ElementType::f32, {channels, height, width}};
}

/// An image that lies in `field`.
ImageShape shape_of(const Field& field) {
  const auto side = [&](std::size_t i) { return static_cast<std::uint32_t>(field.shape[i]); };
  return {side(0), side(1), side(2), field.type};
}

ImageShape image_of(const DatumView& datum, const ImageChoices& choices) {
  return datum.encoded ? image_shape(datum.data, choices) : shape_of(plain_image(datum));
}

Schema schema_of(const DatumView& datum, const ImageShape& image) {
  Schema schema{{image_field(image)}};
  if (datum.label) schema.fields.push_back({"label", ElementType::i32, {}});
  return schema;
}

class DatumCodec final : public SchemaCodec, public HoldsImage {
 public:
  DatumCodec(Schema schema, const ImageShape& first, bool encoded, const ImageChoices& choices)
      : SchemaCodec("datum", std::move(schema)),
        first_(first),
        encoded_(encoded),
        choices_(choices) {}

  void decode(std::span<const std::byte> value,
              std::span<const std::span<std::byte>> fields) const override {
    check_not_empty(value);
    check_buffers(schema_, fields);
    const DatumView datum = scan_datum(value);
    check_label(datum);
    if (datum.encoded && (encoded_ || schema_.fields[0].type == ElementType::u8)) {
      decode_image(datum.data, first_, fields[0], choices_);
    } else {
      copy_plain(value, datum, fields[0]);
    }
    copy_label(datum, fields);
  }
  std::optional<bool> turns(std::span<const std::byte> value) const override {
    const DatumView datum = scan_datum(value);
    if (!datum.encoded) return {};
    return is_turned(datum.data, choices_);
  }
  void check_kind(std::span<const std::byte> value) const override {
    const DatumView datum = scan_datum(value);
    if (datum.encoded) require_same_kind(image_shape(datum.data, choices_), first_);
  }

  std::size_t image_index() const override { return 0; }
  bool image_is_file() const override { return encoded_; }
  std::optional<StoredImage> decode_beside_image(
      std::span<const std::byte> value,
      std::span<const std::span<std::byte>> fields) const override {
    check_not_empty(value);
    const DatumView datum = scan_datum(value);
    check_label(datum);
    copy_label(datum, fields);
    if (datum.encoded) return StoredImage{datum.data, std::nullopt, choices_, first_};
    Field array = plain_image(datum);
    if (array.type != ElementType::u8) return std::nullopt;  // floats may lie scattered
    return StoredImage{datum.data, std::move(array)};
  }

 private:
  void copy_plain(std::span<const std::byte> value, const DatumView& datum,
                  std::span<std::byte> image) const {
    const Field found = image_field(image_of(datum, choices_));
    if (found != schema_.fields[0]) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("the sample is {} but the data set's samples are {}",
                              to_string(Schema{{found}}), to_string(Schema{{schema_.fields[0]}})),
                  "pack samples of one shape, for example with 'forebay pack --shape'");
    }
    if (found.type == ElementType::f32) {
      copy_floats(value, image);
    } else {
      std::memcpy(image.data(), datum.data.data(), image.size());
    }
  }

  void check_label(const DatumView& datum) const {
    const bool expected = schema_.fields.size() > 1;
    if (datum.label.has_value() == expected) return;
    throw Error(ErrorKind::corrupt,
                expected ? "the Datum has no label but the data set's first one has"
                         : "the Datum has a label but the data set's first one has none",
                kRepack);
  }

  static void copy_label(const DatumView& datum, std::span<const std::span<std::byte>> fields) {
    if (datum.label) std::memcpy(fields[1].data(), &*datum.label, sizeof(*datum.label));
  }

  ImageShape first_;
  bool encoded_;
  ImageChoices choices_;
};

}  // namespace

CodecPtr make_datum_codec(std::span<const std::byte> first_value, const ImageChoices& choices) {
  check_not_empty(first_value);
  const DatumView datum = scan_datum(first_value);
  const ImageShape first = image_of(datum, choices);
  return std::make_shared<DatumCodec>(schema_of(datum, first), first, datum.encoded, choices);
}

bool looks_like_datum(std::span<const std::byte> value) {
  try {
    const DatumView datum = scan_datum(value);
    if (datum.encoded) return image_format(datum.data) != ImageFormat::none;
    plain_image(datum);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace forebay
