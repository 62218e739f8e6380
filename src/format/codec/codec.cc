// make_codec() and the codecs that need little code: raw tensors, image files, numbers, bytes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/codec/codecs.hpp"
#include "format/transform/steps.hpp"

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
  ImageCodec(const ImageShape& shape, const ImageChoices& choices)
      : SchemaCodec("image", {{image_field(shape)}}), shape_(shape), choices_(choices) {}

  void decode(std::span<const std::byte> value,
              std::span<const std::span<std::byte>> fields) const override {
    check_not_empty(value);
    check_buffers(schema_, fields);
    decode_image(value, shape_, fields[0], choices_);
  }
  std::optional<bool> turns(std::span<const std::byte> value) const override {
    return is_turned(value, choices_);
  }
  void check_kind(std::span<const std::byte> value) const override {
    require_same_kind(image_shape(value, choices_), shape_);
  }

  std::size_t image_index() const override { return 0; }
  bool image_is_file() const override { return true; }
  std::optional<StoredImage> decode_beside_image(
      std::span<const std::byte> value, std::span<const std::span<std::byte>>) const override {
    check_not_empty(value);
    return StoredImage{value, std::nullopt, choices_, shape_};
  }

 private:
  ImageShape shape_;
  ImageChoices choices_;
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
  explicit BytesCodec(std::size_t untold) : SchemaCodec("bytes", {}), untold_(untold) {}
  void decode(std::span<const std::byte>,
              std::span<const std::span<std::byte>> fields) const override {
    check_buffers(schema_, fields);
  }
  std::size_t untold() const override { return untold_; }

 private:
  std::size_t untold_;
};

/// Arrays of any length, which are not decoded.
class ArrayCodec final : public SchemaCodec {
 public:
  explicit ArrayCodec(ElementType type)
      : SchemaCodec(to_string(type), {.fields = {}, .ragged = {{.type = type}}}) {}
  void decode(std::span<const std::byte> value,
              std::span<const std::span<std::byte>> fields) const override {
    check_buffers(schema_, fields);
    require_array(value, schema_.ragged[0].type);
  }
};

CodecPtr detect_codec(const Schema& declared, std::span<const std::byte> first_value,
                      const ImageChoices& choices) {
  check_not_empty(first_value);
  // A declared schema that the value fits to the byte says more than a look at the bytes does.
  if (!declared.fields.empty() && total_bytes(declared) == first_value.size()) {
    return make_raw_codec(declared);
  }
  if (image_format(first_value) != ImageFormat::none) return make_image_codec(first_value, choices);
  if (looks_like_datum(first_value)) return make_datum_codec(first_value, choices);
  return make_untold_codec();
}

constexpr std::array<std::string_view, 3> kOfImages{"auto", "datum", "image"};

CodecPtr named_codec(const CodecName& codec, const Schema& declared,
                     std::span<const std::byte> first_value) {
  const std::string& name = codec.name;
  if (name == "auto") return detect_codec(declared, first_value, codec.images);
  if (name == "datum") return make_datum_codec(first_value, codec.images);
  if (name == "image") return make_image_codec(first_value, codec.images);
  if (name == "raw") return make_raw_codec(declared);
  if (name == "number") return std::make_shared<NumberCodec>();
  if (name == "bytes") return make_bytes_codec();
  if (name.find(':') != std::string::npos) return make_raw_codec(parse_schema(name));
  if (is_element_type(name)) return std::make_shared<ArrayCodec>(parse_element_type(name));
  throw Error(ErrorKind::usage, fmt::format("'{}' is not a codec", name),
              "use one of auto, datum, image, raw, number, bytes, a type (f32), NAME:TYPE[SHAPE], "
              "or image:CHOICE");
}

/// `transform` may say of images what the codec does not.
CodecPtr make_plain_codec(const CodecOptions& options, const Schema& declared,
                          const Transform& transform, std::span<const std::byte> first_value) {
  if (is_parts_codec(options.codec)) return make_parts_codec(options, first_value);
  CodecName name = parse_codec_name(options.codec);
  if (std::ranges::find(kOfImages, name.name) != kOfImages.end()) {
    name.images = name.images.with(steps_of(transform).images);
    require_no_average(steps_of(transform), name.images);
  }
  return named_codec(name, declared, first_value);
}

}  // namespace

std::optional<bool> turns_image(const Codec& codec, std::span<const std::byte> value) {
  const auto* one = dynamic_cast<const SchemaCodec*>(&codec);
  return one == nullptr ? std::nullopt : one->turns(value);
}

std::size_t untold_of(const Codec& codec) {
  const auto* one = dynamic_cast<const SchemaCodec*>(&codec);
  return one == nullptr ? 0 : one->untold();
}

std::string other_kind(const Codec& codec, std::span<const std::byte> value) {
  try {
    if (const auto* one = dynamic_cast<const SchemaCodec*>(&codec)) one->check_kind(value);
    return {};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt && error.kind() != ErrorKind::unsupported) throw;
    return error.happened();
  }
}

CodecPtr make_raw_codec(Schema schema) {
  if (schema.fields.empty()) {
    throw Error(ErrorKind::usage, "codec raw needs to know the fields",
                "declare them, for example --schema image:u8[3x32x32]");
  }
  return std::make_shared<RawCodec>(std::move(schema));
}

CodecName parse_codec_name(const std::string& codec) {
  std::string_view rest = codec;
  const std::string_view name = rest.substr(0, rest.find(':'));
  const bool of_images = std::ranges::find(kOfImages, name) != kOfImages.end();
  if (!of_images || rest.find('[') != std::string_view::npos) return {codec, {}};
  CodecName parsed{std::string(name), {}};
  while (rest.find(':') != std::string_view::npos) {
    rest.remove_prefix(rest.find(':') + 1);
    const std::string_view word = rest.substr(0, rest.find(':'));
    if (parsed.images.read(word)) continue;
    throw Error(ErrorKind::usage, fmt::format("'{}' is nothing to choose of images", word),
                "use gray, rgb, rgba, palette=index, orientation=stored, with ':' between them");
  }
  return parsed;
}

CodecPtr make_image_codec(std::span<const std::byte> first_value, const ImageChoices& choices) {
  check_not_empty(first_value);
  return std::make_shared<ImageCodec>(image_shape(first_value, choices), choices);
}

CodecPtr make_bytes_codec() { return std::make_shared<BytesCodec>(0); }

CodecPtr make_untold_codec() { return std::make_shared<BytesCodec>(1); }

Field image_field(const ImageShape& shape) {
  return {"image", shape.type, {shape.channels, shape.height, shape.width}};
}

void check_not_empty(std::span<const std::byte> value) {
  if (!value.empty()) return;
  throw Error(ErrorKind::corrupt, "the value is empty",
              "remove or replace the record, or read the values with --codec bytes");
}

void require_array(std::span<const std::byte> value, ElementType type) {
  if (value.size() % size_of(type) == 0) return;
  throw Error(ErrorKind::corrupt,
              fmt::format("{} bytes are no array of {}", value.size(), to_string(type)),
              "correct --codec, or mend the value");
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
  const Transform transform = Transform::parse(options.transform);
  CodecPtr codec = make_plain_codec(options, declared, transform, first_value);
  if (!declared.fields.empty() && codec->schema() != declared) {
    throw Error(ErrorKind::corrupt,
                fmt::format("the first sample is {} but {} was declared",
                            codec->schema().fields.empty() ? "undecodable bytes"
                                                           : to_string(codec->schema()),
                            to_string(declared)),
                "correct --schema or --codec");
  }
  if (!options.transform.empty() && !is_parts_codec(options.codec)) {
    return make_transformed_codec(transform, std::move(codec));
  }
  return codec;
}

}  // namespace forebay
