#include "train/image_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "forebay/error.hpp"

namespace forebay {
namespace {

std::size_t find_field(const Schema& schema, std::string_view name, const std::string& dataset) {
  const auto found = std::ranges::find(schema.fields, name, &Field::name);
  if (found != schema.fields.end()) {
    return static_cast<std::size_t>(found - schema.fields.begin());
  }
  throw Error(ErrorKind::unsupported,
              fmt::format("its samples have no field '{}' but {}", name,
                          schema.fields.empty() ? "none at all" : to_string(schema)),
              "train on labelled images; --codec and --schema say how samples are read",
              {.file = dataset});
}

ImageShape shape_of(const Field& field, const std::string& dataset) {
  constexpr std::uint64_t kLongestSide = 1 << 20;
  const auto& sides = field.shape;
  const bool is_image = (sides.size() == 2 || sides.size() == 3) &&
                        std::ranges::all_of(sides, [](auto side) { return side <= kLongestSide; });
  if (is_image) {
    const auto side = [&sides](std::size_t from_end) {
      return static_cast<std::uint32_t>(sides[sides.size() - from_end]);
    };
    return {.channels = sides.size() == 3 ? side(3) : 1, .height = side(2), .width = side(1)};
  }
  throw Error(ErrorKind::unsupported,
              "its field 'image' is no image: " + to_string(Schema{{field}}),
              "images are channel, height, width or height, width", {.file = dataset});
}

template <typename T>
std::int64_t load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<std::int64_t>(value);
}

bool is_integer(ElementType type) {
  return type == ElementType::u8 || type == ElementType::i32 || type == ElementType::i64;
}

std::int64_t load_integer(ElementType type, const std::byte* from) {
  switch (type) {
    case ElementType::u8:
      return load<std::uint8_t>(from);
    case ElementType::i32:
      return load<std::int32_t>(from);
    default:
      return load<std::int64_t>(from);
  }
}

}  // namespace

ImageReader::ImageReader(const std::shared_ptr<Communicator>& comm, const std::string& dataset,
                         const LoaderOptions& options, Trace* trace)
    : dataset_(dataset),
      loader_(Loader::open(comm, dataset, options, trace)),
      next_iteration_(options.first_iteration) {
  // The schema is the same everywhere, and so is what this throws.
  find_fields();
  const std::uint64_t share = order().share(comm->rank());
  fields_.resize(loader_.schema().fields.size());
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    fields_[i].resize(share * loader_.schema().fields[i].bytes());
  }
}

void ImageReader::find_fields() {
  const Schema& schema = loader_.schema();
  image_field_ = find_field(schema, "image", dataset_);
  label_field_ = find_field(schema, "label", dataset_);
  shape_ = shape_of(schema.fields[image_field_], dataset_);
  const Field& label = schema.fields[label_field_];
  if (label.elements() != 1 || !is_integer(label.type)) {
    throw Error(ErrorKind::unsupported,
                fmt::format("its field 'label' is {} numbers of type {}", label.elements(),
                            to_string(label.type)),
                "labels are one integer a sample", {.file = dataset_});
  }
}

bool ImageReader::next() {
  batch_ = loader_.next();
  if (batch_) ++next_iteration_;
  return batch_.has_value();
}

void ImageReader::decode(std::uint64_t classes) {
  const std::size_t count = batch_->samples().size();
  std::vector<std::span<std::byte>> spans;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const std::size_t bytes = count * loader_.schema().fields[i].bytes();
    spans.push_back(std::span(fields_[i]).first(bytes));
  }
  loader_.decode(*batch_, spans);
  read_labels(classes);
  first_position_ = count == 0 ? 0 : batch_->samples().front().global;
  batch_.reset();
}

void ImageReader::read_labels(std::uint64_t classes) {
  const Field& field = loader_.schema().fields[label_field_];
  labels_.clear();
  for (const Sample& sample : batch_->samples()) {
    const std::byte* at = fields_[label_field_].data() + labels_.size() * field.bytes();
    labels_.push_back(load_integer(field.type, at));
    if (labels_.back() >= 0 && static_cast<std::uint64_t>(labels_.back()) < classes) continue;
    const std::string_view key(reinterpret_cast<const char*>(sample.key.data()), sample.key.size());
    throw Error(
        ErrorKind::unsupported,
        fmt::format("label {} is none of the network's {} classes", labels_.back(), classes),
        "give --classes the largest label plus one, or correct the label",
        {.file = dataset_, .sample = sample.id, .key = printable_key(key)});
  }
}

ImageBatch ImageReader::images(std::optional<std::uint64_t> end) const {
  std::size_t count = labels_.size();
  if (end) {
    // A rank's share of a batch lies in one row of positions.
    const std::uint64_t left = *end > first_position_ ? *end - first_position_ : 0;
    count = static_cast<std::size_t>(std::min<std::uint64_t>(count, left));
  }
  const Field& field = loader_.schema().fields[image_field_];
  return {.pixels = std::span(fields_[image_field_]).first(count * field.bytes()),
          .type = field.type,
          .shape = shape_,
          .labels = std::span(labels_).first(count)};
}

}  // namespace forebay
