#include "format/sample_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "forebay/error.hpp"

namespace forebay {

std::span<const std::byte> PlacedBytes::at(std::uint32_t file, std::uint64_t offset,
                                           std::uint64_t length) const {
  const auto key = [](const PlacedExtent& read) {
    return std::tuple(read.extent.file, read.extent.offset);
  };
  const auto after = std::ranges::upper_bound(reads_, std::tuple(file, offset), {}, key);
  if (after != reads_.begin()) {
    const PlacedExtent& read = *(after - 1);
    const std::uint64_t inside = offset - read.extent.offset;
    if (read.extent.file == file && inside <= read.extent.length &&
        length <= read.extent.length - inside) {
      return memory_.subspan(read.place + inside, length);
    }
  }
  throw Error(ErrorKind::usage, fmt::format("{} bytes are needed that were not planned", length),
              "", {.offset = offset});
}

std::vector<PlacedExtent> place_extents(std::span<const FileExtent> extents,
                                        std::uint64_t gap_bytes) {
  std::vector<PlacedExtent> reads;
  for (const FileExtent& extent : extents) {
    FileExtent* last = reads.empty() ? nullptr : &reads.back().extent;
    if (last != nullptr && last->file == extent.file &&
        extent.offset - (last->offset + last->length) <= gap_bytes) {
      last->length = extent.offset + extent.length - last->offset;
    } else {
      reads.push_back({.extent = extent});
    }
  }
  std::uint64_t place = 0;
  for (PlacedExtent& read : reads) {
    read.place = place;
    place += read.extent.length;
  }
  return reads;
}

std::uint64_t bytes_of(std::span<const PlacedExtent> reads) {
  return reads.empty() ? 0 : reads.back().place + reads.back().extent.length;
}

std::vector<ReadRequest> requests_of(const DataSet& data, std::span<const PlacedExtent> reads,
                                     std::span<std::byte> memory) {
  std::vector<ReadRequest> requests;
  requests.reserve(reads.size());
  for (const PlacedExtent& read : reads) {
    requests.push_back({.offset = data.offset_in_whole(read.extent),
                        .into = memory.subspan(read.place, read.extent.length)});
  }
  return requests;
}

SampleReader::SampleReader(const DataSet& data, const SampleReaderOptions& options)
    : data_(data),
      gap_bytes_(options.gap_bytes),
      bulk_(make_bulk_reader(data.whole(), options.engine, options.bulk)) {}

void SampleReader::read(std::span<const std::uint64_t> ids) {
  plan_ = data_.plan(ids);
  reads_ = place_extents(plan_->extents(), gap_bytes_);
  memory_.resize(bytes_of(reads_));
  scratch_.resize(plan_->scratch_bytes());
  bulk_->read(requests_of(data_, reads_, memory_), [](std::size_t) {});
  for (std::size_t i = 0; i < reads_.size(); ++i) {
    const std::uint32_t file = reads_[i].extent.file;
    if (i == 0 || reads_[i - 1].extent.file != file) data_.check_unchanged(file);
  }
  plan_->decode_all(PlacedBytes(reads_, memory_), scratch_);
}

std::span<const std::byte> SampleReader::part(std::size_t position, std::size_t part) const {
  return plan_->part(position, part, PlacedBytes(reads_, memory_), scratch_);
}

std::span<const std::byte> SampleReader::value(std::size_t position) {
  const PlacedBytes bytes(reads_, memory_);
  PlanValues values(data_, *plan_, bytes, scratch_);
  value_.resize(values.bytes(position));
  values.write(position, value_);
  return value_;
}

}  // namespace forebay
