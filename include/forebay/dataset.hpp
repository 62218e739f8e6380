// A data set: an ordered collection of samples in one or more files, and what its samples mean.
//
//   stored value --codec--> fields, each with a name, an element type and a shape
//
// Everything here is local to one process; Loader is the collective counterpart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/storage.hpp"

namespace forebay {

/// Numbers in the byte order of this machine. f16 is IEEE half precision.
enum class ElementType : std::uint8_t { u8, i32, i64, f32, f64, i8, u16, i16, u32, u64, f16 };

std::size_t size_of(ElementType type);
std::string_view to_string(ElementType type);
ElementType parse_element_type(std::string_view text);

/// One field of a sample. Images are channel, height, width. An empty shape is a scalar.
struct Field {
  std::string name;
  ElementType type = ElementType::u8;
  std::vector<std::uint64_t> shape;

  std::uint64_t elements() const;
  std::uint64_t bytes() const { return elements() * size_of(type); }
  bool operator==(const Field&) const = default;
};

/// The fields of every sample, in the order in which decode() fills them.
struct Schema {
  std::vector<Field> fields;
  /// Parts of values that decode() leaves as they are, and that are arrays of numbers, of any
  /// length.
  std::vector<Field> ragged = {};

  const Field* find(std::string_view name) const;
  bool operator==(const Schema& other) const { return fields == other.fields; }
};

/// "image:u8[3x32x32],label:i32[]"
std::string to_string(const Schema& schema);
Schema parse_schema(std::string_view text);

/// By which convention somebody has filled LMDB databases: which records are samples, or parts of
/// samples (docs/formats.md).
enum class ConventionName : std::uint8_t {
  automatic,  ///< what a look at the keys and beside the data says
  plain,      ///< every record is a sample
  grouped,    ///< keys of several prefixes with the same numbers are parts of one sample
  meta_info,  ///< as the meta_info.txt beside the data lists them
};
std::string_view to_string(ConventionName name);

/// The order of samples, where it is that of their keys.
enum class KeyOrder : std::uint8_t {
  key,     ///< as LMDB compares keys: by bytes, "10" before "9"
  number,  ///< by the number at the end of each key
};
std::string_view to_string(KeyOrder order);

/// Turns a stored value into fields. Immutable and safe to use from many threads at once.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual std::string_view name() const = 0;
  virtual const Schema& schema() const = 0;
  /// Decodes `value` into `fields`, one span a schema field, each of exactly Field::bytes() bytes.
  /// Throws corrupt when the value does not decode or does not fit the schema; the caller adds the
  /// place (Error::within).
  virtual void decode(std::span<const std::byte> value,
                      std::span<const std::span<std::byte>> fields) const = 0;
  /// The same, with what is random in it drawn from `seed` alone: see CodecOptions::transform.
  virtual void decode_seeded(std::span<const std::byte> value,
                             std::span<const std::span<std::byte>> fields,
                             std::uint64_t seed) const {
    static_cast<void>(seed);
    decode(value, fields);
  }
};

/// How to look at stored values.
struct CodecOptions {
  /// auto: told by the first samples. datum: Caffe Datum (raw, float or encoded). image: an
  /// image file; image:rgb and so on say how it is read (docs/decoding.md). raw: the tensor that
  /// `schema` declares. number: an integer as text. f32, i64 and so on: an array of these, of any
  /// length. NAME:f32[3]: one of that shape. bytes: not decoded.
  /// Of samples with parts: for all, or NAME=CODEC,NAME=CODEC, where the others are auto.
  std::string codec = "auto";
  /// Declared fields for `raw`, e.g. "image:u8[3x32x32]"; for the others an expectation to check.
  std::string schema;
  /// What is done to the image of each value, see forebay/transform.hpp; the codec's schema is that
  /// of the outcome. Steps that end in one shape take image files of any size.
  std::string transform;
};

/// Chooses a codec for values like `first_value`. Throws usage, unsupported, corrupt.
std::shared_ptr<const Codec> make_codec(const CodecOptions& options,
                                        std::span<const std::byte> first_value);

}  // namespace forebay
