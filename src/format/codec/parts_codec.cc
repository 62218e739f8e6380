#include "format/codec/codecs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "forebay/error.hpp"
#include "forebay/packed_parts.hpp"
#include "forebay/transform.hpp"

namespace forebay {
namespace {

constexpr std::string_view kOpen = "parts(";
constexpr std::size_t kMostParts = 64;
// So many need no memory of their own, and no more are cleared for each sample.
constexpr std::size_t kFewParts = 8;

struct NamedCodec {
  std::string name;
  std::string codec;
};

[[noreturn]] void refuse(const std::string& happened) {
  throw Error(ErrorKind::usage, happened,
              "give --codec auto or bytes, or NAME=CODEC,NAME=CODEC for the parts");
}

std::vector<NamedCodec> parse_list(std::string_view text) {
  std::vector<NamedCodec> list;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, end);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      refuse(fmt::format("'{}' says of no part what it is", item));
    }
    list.push_back({std::string(item.substr(0, equals)), std::string(item.substr(equals + 1))});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (list.size() > kMostParts) refuse(fmt::format("{} parts are too many", list.size()));
  return list;
}

class PartsCodec final : public SchemaCodec {
 public:
  /// A part, and which fields of the whole are its own.
  struct Part {
    std::string name;
    CodecPtr codec;
    std::size_t first_field = 0;
    std::size_t fields = 0;
  };

  PartsCodec(std::vector<Part> parts, Schema schema)
      : SchemaCodec("parts", std::move(schema)), parts_(std::move(parts)) {}

  void decode(std::span<const std::byte> value,
              std::span<const std::span<std::byte>> fields) const override {
    decode_seeded(value, fields, 0);
  }

  void decode_seeded(std::span<const std::byte> value, std::span<const std::span<std::byte>> fields,
                     std::uint64_t seed) const override {
    check_buffers(schema_, fields);
    std::array<std::span<const std::byte>, kFewParts> few;
    std::vector<std::span<const std::byte>> many(parts_.size() > kFewParts ? parts_.size() : 0);
    const auto values = many.empty() ? std::span(few).first(parts_.size()) : std::span(many);
    split_parts(value, values);
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      decode_part(parts_[p], values[p], fields, seed);
    }
  }

  std::size_t untold() const override {
    std::size_t parts = 0;
    for (const Part& part : parts_) parts += untold_of(*part.codec);
    return parts;
  }

  std::optional<bool> turns(std::span<const std::byte> value) const override {
    const auto values = split_parts(value, parts_.size());
    std::optional<bool> any;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (const auto one = turns_image(*parts_[p].codec, values[p]))
        any = any.value_or(false) || *one;
    }
    return any;
  }

  void check_kind(std::span<const std::byte> value) const override {
    const auto values = split_parts(value, parts_.size());
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const auto* one = dynamic_cast<const SchemaCodec*>(parts_[p].codec.get());
      if (one != nullptr) one->check_kind(values[p]);
    }
  }

 private:
  /// Parts without fields too: their codec says whether they are what they should be.
  static void decode_part(const Part& part, std::span<const std::byte> value,
                          std::span<const std::span<std::byte>> fields, std::uint64_t seed) {
    try {
      part.codec->decode_seeded(value, fields.subspan(part.first_field, part.fields), seed);
    } catch (const Error& error) {
      throw of_part(part.name, error);
    }
  }

  std::vector<Part> parts_;
};

/// An empty value says nothing of the others.
CodecPtr codec_of_part(const NamedCodec& part, const std::string& transform,
                       std::span<const std::byte> value) {
  const CodecOptions mine{.codec = part.codec, .schema = {}, .transform = transform};
  if (value.empty() && parse_codec_name(part.codec).name == "auto") return make_untold_codec();
  try {
    return make_codec(mine, value);
  } catch (const Error& error) {
    throw of_part(part.name, error);
  }
}

bool holds_image(const CodecPtr& codec) {
  return std::ranges::any_of(codec->schema().fields,
                             [](const Field& field) { return field.shape.size() >= 2; });
}

/// Which part a transform of `field` (may be empty) is for: the one of that name, or "image", or
/// the only one that holds an image.
std::size_t part_to_transform(const std::vector<NamedCodec>& list,
                              const std::vector<PartsCodec::Part>& parts,
                              const std::string& field) {
  const auto named =
      std::ranges::find(list, field.empty() ? std::string("image") : field, &NamedCodec::name);
  if (named != list.end()) return static_cast<std::size_t>(named - list.begin());
  const auto holds = [](const PartsCodec::Part& part) { return holds_image(part.codec); };
  const auto images = std::ranges::count_if(parts, holds);
  if (field.empty() && images == 1) {
    return static_cast<std::size_t>(std::ranges::find_if(parts, holds) - parts.begin());
  }
  const auto untold = [](const PartsCodec::Part& part) { return untold_of(*part.codec) > 0; };
  if (field.empty() && images == 0 && std::ranges::any_of(parts, untold)) {
    throw Error(ErrorKind::corrupt, "no part is an image, Datum or declared tensor to transform",
                "name the codec of one, as --codec NAME=image");
  }
  throw Error(ErrorKind::usage,
              field.empty() ? "which part to transform is not clear"
                            : fmt::format("there is no part '{}' to transform", field),
              "name one in front of the transform, like 'lq:resize=224x224'");
}

void transform_one(const std::string& text, const std::vector<NamedCodec>& list,
                   std::span<const std::span<const std::byte>> values,
                   std::vector<PartsCodec::Part>& parts) {
  const Transform whole = Transform::parse(text);
  const std::size_t chosen = part_to_transform(list, parts, whole.field());
  // Inside of its part the image has the name that its codec gives it.
  const std::size_t steps = whole.field().empty() ? 0 : text.find(':') + 1;
  parts[chosen].codec = codec_of_part(list[chosen], text.substr(steps), values[chosen]);
}

}  // namespace

Error of_part(const std::string& name, const Error& error) {
  return Error(error.kind(), fmt::format("part '{}': {}", name, error.happened()), error.remedy(),
               error.where());
}

std::string codec_beside(const std::string& codec, const std::string& known, bool names_part) {
  if (known == "auto") return codec;
  const CodecName said = parse_codec_name(codec);
  const bool is_image = known == "image";
  if (said.name == "auto") return is_image ? known + said.images.text() : known;
  const bool of_images = said.name == "image" || said.name == "datum";
  return of_images && !is_image && !names_part ? known : codec;
}

bool is_parts_codec(std::string_view codec) { return codec.starts_with(kOpen); }

std::string parts_codec_text(const std::vector<std::string>& parts, const std::string& wanted,
                             std::span<const std::string> known) {
  if (wanted == "bytes") return wanted;
  // Behind a ':' an '=' belongs to what is chosen of images.
  const std::size_t sign = wanted.find_first_of(":=");
  const bool listed = sign != std::string::npos && wanted[sign] == '=';
  std::vector<NamedCodec> list = listed ? parse_list(wanted) : std::vector<NamedCodec>();
  for (const NamedCodec& item : list) {
    if (std::ranges::find(parts, item.name) != parts.end()) continue;
    refuse(fmt::format("there is no part '{}' among {}", item.name, fmt::join(parts, ", ")));
  }
  std::string text(kOpen);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto said = std::ranges::find(list, parts[p], &NamedCodec::name);
    std::string codec = said != list.end() ? said->codec : listed ? "auto" : wanted;
    if (!known.empty()) codec = codec_beside(codec, known[p], said != list.end());
    text += fmt::format("{}{}={}", p == 0 ? "" : ",", parts[p], codec);
  }
  return text + ")";
}

CodecPtr make_parts_codec(const CodecOptions& options, std::span<const std::byte> first_value) {
  std::string_view text = options.codec;
  text.remove_prefix(kOpen.size());
  if (text.ends_with(')')) text.remove_suffix(1);
  const std::vector<NamedCodec> list = parse_list(text);
  const auto values = split_parts(first_value, list.size());
  std::vector<PartsCodec::Part> parts;
  for (std::size_t p = 0; p < list.size(); ++p) {
    parts.push_back({.name = list[p].name, .codec = codec_of_part(list[p], {}, values[p])});
  }
  if (!options.transform.empty()) transform_one(options.transform, list, values, parts);
  Schema schema;
  for (std::size_t p = 0; p < list.size(); ++p) {
    parts[p].first_field = schema.fields.size();
    parts[p].fields = parts[p].codec->schema().fields.size();
    for (Field field : parts[p].codec->schema().fields) {
      field.name = parts[p].fields == 1 ? list[p].name : list[p].name + "." + field.name;
      schema.fields.push_back(std::move(field));
    }
    for (Field field : parts[p].codec->schema().ragged) {
      field.name = list[p].name;
      schema.ragged.push_back(std::move(field));
    }
  }
  return std::make_shared<PartsCodec>(std::move(parts), std::move(schema));
}

}  // namespace forebay
