#include "arrays.hpp"

#include <algorithm>

#include "forebay/packed_parts.hpp"
#include "format/codec/codecs.hpp"

namespace forebay::python {
namespace {

nb::dlpack::dtype dtype_of(ElementType type) {
  using nb::dlpack::dtype_code;
  const char kind = to_string(type).front();  // of "u8", "i32", "f64"
  const dtype_code code = kind == 'f'   ? dtype_code::Float
                          : kind == 'i' ? dtype_code::Int
                                        : dtype_code::UInt;
  return {.code = static_cast<std::uint8_t>(code),
          .bits = static_cast<std::uint8_t>(8 * size_of(type)),
          .lanes = 1};
}

}  // namespace

nb::object array_over(std::span<const std::byte> data, ElementType type,
                      const std::vector<std::size_t>& shape, std::shared_ptr<const void> owner) {
  auto* const kept = new std::shared_ptr<const void>(std::move(owner));
  const nb::capsule capsule(
      kept, [](void* held) noexcept { delete static_cast<std::shared_ptr<const void>*>(held); });
  // Writable, as collated batches are: the memory is the array's alone until it is given back.
  auto* const start = const_cast<std::byte*>(data.data());
  return nb::cast(
      nb::ndarray<nb::numpy>(start, shape.size(), shape.data(), capsule, nullptr, dtype_of(type)));
}

nb::list list_of_bytes(std::span<const std::string> texts) {
  nb::list all;
  for (const std::string& text : texts) all.append(nb::bytes(text.data(), text.size()));
  return all;
}

std::vector<std::size_t> batch_shape(const Field& field, std::size_t samples) {
  std::vector<std::size_t> shape{samples};
  shape.insert(shape.end(), field.shape.begin(), field.shape.end());
  return shape;
}

std::vector<ElementType> types_of(std::span<const std::string> parts, const Schema& schema) {
  std::vector<ElementType> types(std::max<std::size_t>(1, parts.size()), ElementType::u8);
  for (const Field& field : schema.ragged) {
    const auto at = std::ranges::find(parts, field.name);
    types[at == parts.end() ? 0 : static_cast<std::size_t>(at - parts.begin())] = field.type;
  }
  return types;
}

void Column::add(std::span<const std::byte> value, ElementType type) {
  require_array(value, type);
  bytes.insert(bytes.end(), value.begin(), value.end());
  offsets.push_back(static_cast<std::int64_t>(bytes.size() / size_of(type)));
}

Columns::Columns(const WantedParts& which, std::size_t samples, std::size_t bytes)
    : which_(&which), split_(which.parts.size()), columns_(which.wanted.size()) {
  for (Column& column : columns_) column.offsets.reserve(samples + 1);
  if (columns_.size() == 1) columns_.front().bytes.reserve(bytes);
}

void Columns::add(std::span<const std::byte> value) {
  if (columns_.empty()) return;
  if (split_.empty()) return columns_.front().add(value, which_->types[0]);
  split_parts(value, split_);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const std::size_t part = which_->wanted[c];
    try {
      columns_[c].add(split_[part], which_->types[part]);
    } catch (const Error& error) {
      throw of_part(which_->parts[part], error);
    }
  }
}

nb::list Columns::to_python() {
  nb::list all;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const auto bytes = std::make_shared<std::vector<std::byte>>(std::move(columns_[c].bytes));
    const ElementType type = which_->types[split_.empty() ? 0 : which_->wanted[c]];
    all.append(nb::make_tuple(array_over(*bytes, type, {bytes->size() / size_of(type)}, bytes),
                              array_of(std::move(columns_[c].offsets))));
  }
  return all;
}

Error of_sample(const Error& error, std::uint64_t id, std::string_view key) {
  return error.within({.sample = id, .key = printable_key(key)});
}

}  // namespace forebay::python
