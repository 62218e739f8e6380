// make_codec() and the codecs that need little code: raw tensors, image files, numbers, bytes.
#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/codec/codecs.hpp"

namespace forebay {
namespace {

std::uint64_t total_bytes(const Schema& schema) {
  std::uint64_t total = 0;
  for (const Field& field : schema.fields) total += field.bytes();
  return total;
}

class RawCodec final : public SchemaCodec {
 public:
  explicit RawCodec(Schema schema)
      : SchemaCodec("raw", std::move(schema)), bytes_(total_bytes(schema_)) {}

  void decode(std::span<const std::byte> value,
              std::span<const std::span<std::byte>> fields) const override {
    check_not_empty(value);
    check_buffers(schema_, fields);
    if (value.size() != bytes_) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("the value has {} bytes but {} needs {}", value.size(),
                              to_string(schema_), bytes_),
                  "correct --schema, or pack samples of one size");
    }
    for (const auto& field : fields) {
      std::memcpy(field.data(), value.data(), field.size());
      value = value.subspan(field.size());
    }
  }

 private:
  std::uint64_t bytes_;
};

class ImageCodec final : public SchemaCodec, public HoldsImage {
 public:
  explicit ImageCodec(const ImageShape& shape)
      : SchemaCodec("image", {{image_field(shape)}}), shape_(shape) {}

  void decode(std::span<const std::byte> value,
              std::span<const std::span<std::byte>> fields) const override {
    check_not_empty(value);
    check_buffers(schema_, fields);
    decode_image(value, shape_, fields[0]);
  }

  std::size_t image_index() const override { return 0; }
  bool image_is_file() const override { return true; }
  std::optional<StoredImage> decode_beside_image(
      std::span<const std::byte> value, std::span<const std::span<std::byte>>) const override {
    check_not_empty(value);
    return StoredImage{value, std::nullopt};
  }

 private:
  ImageShape shape_;
};

/// An integer as text: "7", also with white space around it.
class NumberCodec final : public SchemaCodec {
 public:
  NumberCodec()
      : SchemaCodec("number", {{Field{.name = "number", .type = ElementType::i64, .shape = {}}}}) {}

  void decode(std::span<const std::byte> value,
              std::span<const std::span<std::byte>> fields) const override {
    check_buffers(schema_, fields);
    constexpr std::string_view kSpace = " \t\r\n";
    std::string_view text = chars_of(value);
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    text = text.substr(0, text.find_last_not_of(kSpace) + 1);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw Error(ErrorKind::corrupt, "the value is no integer as text",
                  "leave its part out, or give it the codec bytes");
    }
    std::memcpy(fields[0].data(), &number, sizeof number);
  }
};

class BytesCodec final : public SchemaCodec {
 public:
  BytesCodec() : SchemaCodec("bytes", {}) {}
  void decode(std::span<const std::byte>,
              std::span<const std::span<std::byte>> fields) const override {
    check_buffers(schema_, fields);
  }
};

/// Arrays of any length, which are not decoded.
class ArrayCodec final : public SchemaCodec {
 public:
  explicit ArrayCodec(ElementType type)
      : SchemaCodec(to_string(type), {.fields = {}, .ragged = {{.type = type}}}) {}
  void decode(std::span<const std::byte> value,
              std::span<const std::span<std::byte>> fields) const override {
    check_buffers(schema_, fields);
    if (value.size() % size_of(schema_.ragged[0].type) == 0) return;
    throw Error(ErrorKind::corrupt,
                fmt::format("{} bytes are no array of {}", value.size(), name()),
                "correct --codec");
  }
};

CodecPtr detect_codec(const Schema& declared, std::span<const std::byte> first_value) {
  check_not_empty(first_value);
  // A declared schema that the value fits to the byte says more than a look at the bytes does.
  if (!declared.fields.empty() && total_bytes(declared) == first_value.size()) {
    return make_raw_codec(declared);
  }
  if (image_format(first_value) != ImageFormat::none) return make_image_codec(first_value);
  if (looks_like_datum(first_value)) return make_datum_codec(first_value);
  return make_bytes_codec();
}

CodecPtr named_codec(const std::string& name, const Schema& declared,
                     std::span<const std::byte> first_value) {
  if (name == "auto") return detect_codec(declared, first_value);
  if (name == "datum") return make_datum_codec(first_value);
  if (name == "image") return make_image_codec(first_value);
  if (name == "raw") return make_raw_codec(declared);
  if (name == "number") return std::make_shared<NumberCodec>();
  if (name == "bytes") return make_bytes_codec();
  if (name.find(':') != std::string::npos) return make_raw_codec(parse_schema(name));
  if (is_element_type(name)) return std::make_shared<ArrayCodec>(parse_element_type(name));
  throw Error(
      ErrorKind::usage, fmt::format("'{}' is not a codec", name),
      "use one of auto, datum, image, raw, number, bytes, a type (f32) or NAME:TYPE[SHAPE]");
}

}  // namespace

CodecPtr make_raw_codec(Schema schema) {
  if (schema.fields.empty()) {
    throw Error(ErrorKind::usage, "codec raw needs to know the fields",
                "declare them, for example --schema image:u8[3x32x32]");
  }
  return std::make_shared<RawCodec>(std::move(schema));
}

CodecPtr make_image_codec(std::span<const std::byte> first_value) {
  check_not_empty(first_value);
  return std::make_shared<ImageCodec>(image_shape(first_value));
}

CodecPtr make_bytes_codec() { return std::make_shared<BytesCodec>(); }

Field image_field(const ImageShape& shape, ElementType type) {
  return {"image", type, {shape.channels, shape.height, shape.width}};
}

void check_not_empty(std::span<const std::byte> value) {
  if (!value.empty()) return;
  throw Error(ErrorKind::corrupt, "the value is empty",
              "remove or replace the record, or read the values with --codec bytes");
}

void check_buffers(const Schema& schema, std::span<const std::span<std::byte>> fields) {
  bool fit = schema.fields.size() == fields.size();
  for (std::size_t i = 0; fit && i < fields.size(); ++i) {
    fit = fields[i].size() == schema.fields[i].bytes();
  }
  if (!fit) {
    throw Error(ErrorKind::usage,
                fmt::format("decode() was given buffers that do not fit {}", to_string(schema)));
  }
}

CodecPtr make_codec(const CodecOptions& options, std::span<const std::byte> first_value) {
  const Schema declared = parse_schema(options.schema);
  CodecPtr codec = is_parts_codec(options.codec)
                       ? make_parts_codec(options, first_value)
                       : named_codec(options.codec, declared, first_value);
  if (!declared.fields.empty() && codec->schema() != declared) {
    throw Error(ErrorKind::corrupt,
                fmt::format("the first sample is {} but {} was declared",
                            codec->schema().fields.empty() ? "undecodable bytes"
                                                           : to_string(codec->schema()),
                            to_string(declared)),
                "correct --schema or --codec");
  }
  if (!options.transform.empty() && !is_parts_codec(options.codec)) {
    return make_transformed_codec(Transform::parse(options.transform), std::move(codec));
  }
  return codec;
}

}  // namespace forebay
