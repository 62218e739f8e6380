// A codec whose image goes through a transform on its way. Where the image can be taken out of the
// value as it is stored, only what the transform needs of it is decoded.
#include <fmt/format.h>

#include <utility>

#include "forebay/error.hpp"
#include "format/codec/codecs.hpp"
#include "format/transform/run.hpp"

namespace forebay {
namespace {

/// The field that `name` names, or else "image", or else the only one with the shape of an image.
std::size_t choose_field(const Schema& schema, const std::string& name) {
  const auto& fields = schema.fields;
  const Field* found = schema.find(name.empty() ? "image" : name);
  if (found != nullptr) return static_cast<std::size_t>(found - fields.data());
  std::size_t candidates = 0, candidate = 0;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (fields[f].shape.size() < 2) continue;
    ++candidates;
    candidate = f;
  }
  if (name.empty() && candidates == 1) return candidate;
  throw Error(ErrorKind::usage,
              name.empty()
                  ? fmt::format("none of the fields is called image, and {} may be one: {}",
                                candidates, to_string(schema))
                  : fmt::format("there is no field '{}' to transform: samples are {}", name,
                                to_string(schema)),
              "name one in front of the transform, like 'x:resize=224x224'");
}

ImageShape shape_of(const Field& file) {
  const auto side = [&](std::size_t i) { return static_cast<std::uint32_t>(file.shape[i]); };
  return {side(0), side(1), side(2), file.type};
}

}  // namespace

class TransformedCodec final : public SchemaCodec {
 public:
  TransformedCodec(const Transform& transform, CodecPtr inner)
      : SchemaCodec(inner->name(), inner->schema()),
        transform_(transform),
        steps_(&steps_of(transform_)),
        inner_(std::move(inner)),
        holder_(dynamic_cast<const HoldsImage*>(inner_.get())),
        index_(choose_field(schema_, steps_->field)) {
    if (holder_ != nullptr && holder_->image_index() != index_) holder_ = nullptr;
    hwc_ = steps_->from_hwc && holder_ == nullptr;
    schema_.fields[index_] = output_field();
  }

  void decode(std::span<const std::byte> value,
              std::span<const std::span<std::byte>> fields) const override {
    decode_seeded(value, fields, 0);
  }

  void decode_seeded(std::span<const std::byte> value, std::span<const std::span<std::byte>> fields,
                     std::uint64_t seed) const override {
    check_buffers(schema_, fields);
    const Field& output = schema_.fields[index_];
    const auto image =
        holder_ == nullptr ? std::nullopt : holder_->decode_beside_image(value, fields);
    if (!image) {
      run_on_array(inner_->schema().fields[index_], decode_image_field(value, fields), seed,
                   fields[index_]);
    } else if (image->array) {
      run_on_array(*image->array, image->bytes, seed, fields[index_]);
    } else {
      const auto file = open_image(image->bytes, image->choices);
      require_same_bits(file->shape(), image->first);
      run_on_file(*steps_, *file, seed, output, fields[index_]);
    }
  }

 private:
  const Field& stored() const { return inner_->schema().fields[index_]; }

  /// Files may have any size where the steps make one size of it; all else is like the first.
  Field output_field() const {
    const bool file = holder_ != nullptr && holder_->image_is_file();
    if (file) checked_file(shape_of(stored()));
    const ImageState first = state_of(image_shape_of(stored(), hwc_));
    if (file) {
      ImageState any = first;
      any.height = any.width = 0;
      any = after(*steps_, any, ErrorKind::usage);
      if (any.fixed()) return field_of(any, steps_->to_hwc, stored().name);
    }
    return field_of(after(*steps_, first, ErrorKind::usage), steps_->to_hwc, stored().name);
  }

  void run_on_array(const Field& field, std::span<const std::byte> bytes, std::uint64_t seed,
                    std::span<std::byte> out) const {
    run_on_pixels(
        *steps_,
        {.bytes = bytes, .shape = image_shape_of(field, hwc_), .type = field.type, .hwc = hwc_},
        seed, schema_.fields[index_], out);
  }

  /// Decodes the value: the image into memory of this thread, which is returned, all else in place.
  std::span<const std::byte> decode_image_field(
      std::span<const std::byte> value, std::span<const std::span<std::byte>> fields) const {
    // One allocation a thread, not one a sample.
    thread_local Spare memory;
    thread_local std::vector<std::span<std::byte>> targets;
    targets.assign(fields.begin(), fields.end());
    targets[index_] = room_in(memory, stored().bytes());
    inner_->decode(value, targets);
    return targets[index_];
  }

  Transform transform_;
  const TransformSteps* steps_;  ///< its own
  CodecPtr inner_;
  const HoldsImage* holder_;  ///< the inner codec, if it is one
  std::size_t index_;
  bool hwc_ = false;
};

CodecPtr make_transformed_codec(const Transform& transform, CodecPtr inner) {
  if (transform.empty()) return inner;
  if (inner->schema().fields.empty()) {
    throw Error(ErrorKind::corrupt, "the value is no image, Datum or declared tensor to transform",
                "name its --codec, and declare --schema for raw tensors");
  }
  return std::make_shared<TransformedCodec>(transform, std::move(inner));
}

}  // namespace forebay
