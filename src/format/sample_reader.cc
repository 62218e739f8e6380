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

SampleReader::SampleReader(const SampleSource& source, const SampleReaderOptions& options)
    : source_(source), options_(options), readers_(source.files().size()) {}

void SampleReader::read(std::span<const std::uint64_t> ids) {
  plan_ = std::make_unique<SamplePlan>(source_.plan(ids));
  reads_ = place_extents(plan_->extents(), options_.gap_bytes);
  memory_.resize(reads_.empty() ? 0 : reads_.back().place + reads_.back().extent.length);
  scratch_.resize(plan_->scratch_bytes());
  for (std::size_t begin = 0; begin < reads_.size();) {
    std::size_t end = begin;
    while (end < reads_.size() && reads_[end].extent.file == reads_[begin].extent.file) ++end;
    read_file(reads_[begin].extent.file, std::span(reads_).subspan(begin, end - begin));
    begin = end;
  }
  plan_->decode_all(PlacedBytes(reads_, memory_), scratch_);
}

void SampleReader::read_file(std::uint32_t file, std::span<const PlacedExtent> reads) {
  std::vector<ReadRequest> requests;
  for (const PlacedExtent& read : reads) {
    requests.push_back({.offset = read.extent.offset,
                        .into = std::span(memory_).subspan(read.place, read.extent.length)});
  }
  reader_of(file).read(requests, [](std::size_t) {});
  source_.check_unchanged(file);
}

BulkReader& SampleReader::reader_of(std::uint32_t file) {
  auto& reader = readers_[file];
  if (!reader) reader = make_bulk_reader(source_.files()[file], options_.engine, options_.bulk);
  return *reader;
}

std::span<const std::byte> SampleReader::value(std::size_t position, std::size_t field) const {
  return plan_->value(position, field, PlacedBytes(reads_, memory_), scratch_);
}

BulkCounters SampleReader::counters() const {
  BulkCounters sum;
  for (const auto& reader : readers_) {
    if (!reader) continue;
    sum.requests += reader->counters().requests;
    sum.bytes += reader->counters().bytes;
  }
  return sum;
}

}  // namespace forebay
