#include "columns.hpp"

#include "arrays.hpp"
#include "forebay/packed_parts.hpp"

namespace forebay::python {

void Column::add(std::span<const std::byte> value) {
  const auto* const first = reinterpret_cast<const std::uint8_t*>(value.data());
  bytes.insert(bytes.end(), first, first + value.size());
  offsets.push_back(static_cast<std::int64_t>(bytes.size()));
}

Columns::Columns(const WantedParts& which, std::size_t samples, std::size_t bytes)
    : which_(&which), split_(which.parts), columns_(which.wanted.size()) {
  for (Column& column : columns_) column.offsets.reserve(samples + 1);
  if (columns_.size() == 1) columns_.front().bytes.reserve(bytes);
}

void Columns::add(std::span<const std::byte> value) {
  if (columns_.empty()) return;
  if (split_.empty()) return columns_.front().add(value);
  split_parts(value, split_);
  for (std::size_t c = 0; c < columns_.size(); ++c) columns_[c].add(split_[which_->wanted[c]]);
}

nb::list Columns::to_python() {
  nb::list all;
  for (Column& column : columns_) {
    all.append(
        nb::make_tuple(array_of(std::move(column.bytes)), array_of(std::move(column.offsets))));
  }
  return all;
}

}  // namespace forebay::python
