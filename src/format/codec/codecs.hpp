// The codecs behind make_codec(), one factory a kind. A factory fixes the schema, from the declared
// one or from the first value; from then on every value must fit it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/dataset.hpp"
#include "forebay/error.hpp"
#include "forebay/transform.hpp"
#include "format/codec/image.hpp"
#include "format/record_source.hpp"

namespace forebay {

using CodecPtr = std::shared_ptr<const Codec>;

/// What all codecs are: a name, and fields.
class SchemaCodec : public Codec {
 public:
  SchemaCodec(std::string_view name, Schema schema) : name_(name), schema_(std::move(schema)) {}
  std::string_view name() const final { return name_; }
  const Schema& schema() const final { return schema_; }
  /// As turns_image().
  virtual std::optional<bool> turns(std::span<const std::byte> /*value*/) const { return {}; }
  /// Throws as decode() where an image of the value has another depth or other channels than those
  /// of the data set.
  virtual void check_kind(std::span<const std::byte> /*value*/) const {}
  /// As untold_of().
  virtual std::size_t untold() const { return 0; }

 protected:
  std::string_view name_;  ///< lives as long as the process
  Schema schema_;
};

/// Whether an image of `value` is turned when it is decoded, as its EXIF orientation says; nothing
/// where there is no image file. Throws as decode().
std::optional<bool> turns_image(const Codec& codec, std::span<const std::byte> value);

/// How an image file of `value` is none of the data set's kind: of another depth, or with other
/// channels; also where it does not decode. Empty where it is. Its size is not looked at.
std::string other_kind(const Codec& codec, std::span<const std::byte> value);

/// Of how many parts (of a value without parts: 0 or 1) the value that `codec` was made of says
/// nothing, nor does the user: they stay bytes, and another value may say what they are.
std::size_t untold_of(const Codec& codec);

/// Caffe Datums like `first_value`. Throws corrupt.
CodecPtr make_datum_codec(std::span<const std::byte> first_value, const ImageChoices& choices = {});
/// Image files like `first_value`. Throws corrupt, unsupported.
CodecPtr make_image_codec(std::span<const std::byte> first_value, const ImageChoices& choices = {});
/// The bytes of the fields of `schema`, one after the other. Throws usage when it has no fields.
CodecPtr make_raw_codec(Schema schema);
/// Values that stay as they are: no fields, decode() does nothing.
CodecPtr make_bytes_codec();
/// The same, for want of a value that says what they are.
CodecPtr make_untold_codec();

// Samples of several parts (forebay/packed_parts.hpp), each part with a codec of its own.
//
//   parts(image=auto,label=bytes)      the text form, CodecOptions::codec
//
// A part whose values have one field gives it the part's name, one with several gives
// "part.field". Parts that decode to no fixed shape, text above all, have no field: who wants them
// takes them from the value.

/// The text form for samples of these parts, when the user says `wanted`: one codec for all, or
/// NAME=CODEC,... Where that is auto, `known` may say better, a codec a part. Throws usage.
std::string parts_codec_text(const std::vector<std::string>& parts, const std::string& wanted,
                             std::span<const std::string> known = {});

/// `codec`, which was said of all values or, with `names_part`, of this one, where the data set has
/// a codec for it already: what is said of images without naming a part is meant for those that may
/// be images.
std::string codec_beside(const std::string& codec, const std::string& known, bool names_part);

bool is_parts_codec(std::string_view codec);

/// `options.codec` as parts_codec_text() made it. Throws usage, corrupt, unsupported.
CodecPtr make_parts_codec(const CodecOptions& options, std::span<const std::byte> first_value);

/// A codec's name, and behind it what is chosen of images: "image:rgb:orientation=stored".
struct CodecName {
  std::string name;
  ImageChoices images;
};
/// Only auto, datum and image have choices. Throws usage where they do not read.
CodecName parse_codec_name(const std::string& codec);

/// Whether parse_element_type() knows it.
bool is_element_type(std::string_view text);

/// Whether `value` is a Datum whose shape and data agree.
bool looks_like_datum(std::span<const std::byte> value);

/// `inner`, with `transform` done to its image. Throws usage when it has none that fits, and
/// corrupt when its values have no fields at all.
CodecPtr make_transformed_codec(const Transform& transform, CodecPtr inner);

/// The image inside a value, as it is stored.
struct StoredImage {
  std::span<const std::byte> bytes;
  std::optional<Field> array;  ///< nothing: an image file, to be read as `choices` say
  ImageChoices choices = {};
  ImageShape first = {};  ///< of files, that of the data set's first
};

/// What codecs are whose image may be taken out of a value undecoded.
class HoldsImage {
 public:
  virtual ~HoldsImage() = default;
  virtual std::size_t image_index() const = 0;
  /// Whether images are files, of which each has a size of its own.
  virtual bool image_is_file() const = 0;
  /// Decodes the other fields and finds the image; nothing where only decode() gets at it.
  virtual std::optional<StoredImage> decode_beside_image(
      std::span<const std::byte> value, std::span<const std::span<std::byte>> fields) const = 0;
};

// Which sample tells what all values are: the first of which each part decodes, or the most parts.
// One that is bad (an empty file, a page of HTML instead of an image) does not make bytes of all
// others. All who open a data set look in the same way, and so agree about its fields.

/// Hands over a sample. Throws what reading throws.
using ReadSample = std::function<void(std::uint64_t id, const RecordSink& sink)>;

/// What is passed over in the look for the sample that tells.
struct Doubts {
  /// Where the first samples have no fields at all, hundreds are looked at: who leaves out samples
  /// that do not decode expects some.
  bool undecodable = false;
  bool unreadable = false;
  /// Of so many samples at most the one that most others agree with, else the first.
  std::size_t votes = 1;
};

struct TellingSample {
  CodecOptions codec;        ///< what the user said; `bytes` where all samples are empty
  std::uint64_t sample = 0;  ///< not looked at where the user said all, as are the next two
  std::string key = {};
  std::string value = {};

  /// Throws as make_codec, naming `file` and the sample.
  CodecPtr make(const std::string& file) const;
};

/// Looks at no more than 1,000 of `entries`, and at few where values may be anything: text never
/// says what it is. Throws what reading throws, and usage.
TellingSample find_telling_sample(const CodecOptions& options, std::uint64_t entries,
                                  const ReadSample& read, const Doubts& doubts = {});

/// {"image", type, {channels, height, width}}
Field image_field(const ImageShape& shape);

/// Throws corrupt: a value of zero bytes holds no fields.
void check_not_empty(std::span<const std::byte> value);
/// Throws corrupt unless `value` is a whole number of elements.
void require_array(std::span<const std::byte> value, ElementType type);
/// `error`, which is about the part of that name.
Error of_part(const std::string& name, const Error& error);
/// Throws usage unless `fields` are buffers of exactly the sizes that `schema` asks for.
void check_buffers(const Schema& schema, std::span<const std::span<std::byte>> fields);

}  // namespace forebay
