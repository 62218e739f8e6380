#include "train/batch_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "forebay/error.hpp"
#include "train/net_catalog.hpp"

namespace forebay {
namespace {

/// The number of the field `given`, or else `usual`, or else `position` of two.
std::size_t find_field(const Schema& schema, const std::string& given, std::string_view usual,
                       std::size_t position, const std::string& dataset) {
  const std::string_view name = given.empty() ? usual : given;
  const auto found = std::ranges::find(schema.fields, name, &Field::name);
  if (found != schema.fields.end()) {
    return static_cast<std::size_t>(found - schema.fields.begin());
  }
  if (given.empty() && schema.fields.size() == 2) return position;
  throw Error(ErrorKind::unsupported,
              fmt::format("its samples have no field '{}' but {}", name,
                          schema.fields.empty() ? "none at all" : to_string(schema)),
              "name its fields with --input and --target; --codec and --schema say how samples are "
              "read",
              {.file = dataset});
}

LoaderOptions decoded(LoaderOptions options) {
  options.decode = true;
  options.one_at_a_time = true;
  return options;
}

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
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

BatchReader::BatchReader(const std::shared_ptr<Communicator>& comm, const std::string& dataset,
                         const LoaderOptions& options, const FieldNames& names, Trace* trace)
    : dataset_(dataset),
      task_(names.task),
      loader_(Loader::open(comm, dataset, decoded(options), trace)),
      next_iteration_(options.first_iteration) {
  // The schema is the same everywhere, and so is what this throws.
  find_fields(names);
}

void BatchReader::find_fields(const FieldNames& names) {
  const Schema& schema = loader_.schema();
  const bool classify = task_ == Task::classify;
  input_ = find_field(schema, names.input, classify ? "image" : "x", 0, dataset_);
  target_ = find_field(schema, names.target, classify ? "label" : "y", 1, dataset_);
  if (input_ == target_) {
    throw Error(ErrorKind::usage,
                fmt::format("its field '{}' cannot be input and target", input_field().name),
                "name two fields with --input and --target", {.file = dataset_});
  }
  shape_ = input_field().shape;
  if (!classify) return check_target();
  check_label();
  try {
    const ImageShape image = as_image(shape_);
    shape_ = {image.channels, image.height, image.width};
  } catch (const Error& error) {
    throw error.within({.file = dataset_});
  }
}

void BatchReader::check_label() const {
  const Field& label = target_field();
  if (label.elements() == 1 && is_integer(label.type)) return;
  throw Error(ErrorKind::unsupported,
              fmt::format("its field '{}' is {} numbers of type {}", label.name, label.elements(),
                          to_string(label.type)),
              "labels are one integer a sample", {.file = dataset_});
}

void BatchReader::check_target() const {
  const Field& target = target_field();
  const bool real = target.type == ElementType::f32 || target.type == ElementType::f64;
  if (real && target.elements() >= 1 && input_field().elements() >= 1) return;
  throw Error(ErrorKind::unsupported,
              fmt::format("its field '{}' is {} numbers of type {}", target.name, target.elements(),
                          to_string(target.type)),
              "targets are numbers of type f32 or f64; name their field with --target",
              {.file = dataset_});
}

std::uint64_t BatchReader::targets() const { return target_field().elements(); }

bool BatchReader::next() {
  release();
  batch_ = loader_.next();
  if (batch_) {
    ++next_iteration_;
    pass_ = batch_->pass();
  }
  return batch_.has_value();
}

void BatchReader::read(std::uint64_t classes) {
  task_ == Task::classify ? read_labels(classes) : read_targets();
}

void BatchReader::read_labels(std::uint64_t classes) {
  const Field& label = target_field();
  labels_.clear();
  for (const Sample& sample : batch_->samples()) {
    const std::byte* from = batch_->field(target_).data() + labels_.size() * label.bytes();
    labels_.push_back(load_integer(label.type, from));
    if (labels_.back() >= 0 && static_cast<std::uint64_t>(labels_.back()) < classes) continue;
    const std::string_view key(reinterpret_cast<const char*>(sample.key.data()), sample.key.size());
    throw Error(
        ErrorKind::unsupported,
        fmt::format("label {} is none of the network's {} classes", labels_.back(), classes),
        "give --classes the largest label plus one, or correct the label",
        {.file = dataset_, .sample = sample.id, .key = printable_key(key)});
  }
}

void BatchReader::read_targets() {
  const Field& target = target_field();
  const std::size_t size = size_of(target.type);
  targets_.resize(count() * target.elements());
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const std::byte* from = batch_->field(target_).data() + i * size;
    targets_[i] = target.type == ElementType::f32 ? load<float>(from)
                                                  : static_cast<float>(load<double>(from));
  }
}

TrainingBatch BatchReader::batch_before(std::uint64_t end) const {
  const auto behind = std::ranges::lower_bound(batch_->samples(), end, {}, &Sample::global);
  return first(static_cast<std::size_t>(behind - batch_->samples().begin()));
}

TrainingBatch BatchReader::first(std::size_t count) const {
  TrainingBatch batch{.count = count,
                      .inputs = batch_->field(input_).first(count * input_field().bytes()),
                      .type = input_field().type,
                      .shape = shape_,
                      .labels = {},
                      .targets = {}};
  if (task_ == Task::classify) {
    batch.labels = std::span(labels_).first(count);
  } else {
    batch.targets = std::span(targets_).first(count * targets());
  }
  return batch;
}

}  // namespace forebay
