#include "format/sample_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/read_watch.hpp"
#include "forebay/error.hpp"

namespace forebay {

std::span<const std::byte> PlacedBytes::in_read(std::size_t read, std::uint32_t file,
                                                std::uint64_t offset, std::uint64_t length) const {
  if (read >= reads_.size()) return {};
  const FileExtent& extent = reads_[read].extent;
  const std::uint64_t inside = offset - extent.offset;
  if (extent.file != file || inside > extent.length || length > extent.length - inside) return {};
  return memory_.subspan(reads_[read].place + inside, length);
}

std::span<const std::byte> PlacedBytes::find_nearby(std::uint32_t file, std::uint64_t offset,
                                                    std::uint64_t length) const {
  const std::size_t last = last_.load(std::memory_order_relaxed);
  if (const auto found = in_read(last, file, offset, length); found.data() != nullptr) return found;
  const auto found = in_read(last + 1, file, offset, length);
  if (found.data() != nullptr) last_.store(last + 1, std::memory_order_relaxed);
  return found;
}

std::span<const std::byte> PlacedBytes::at(std::uint32_t file, std::uint64_t offset,
                                           std::uint64_t length) const {
  if (const auto nearby = find_nearby(file, offset, length); nearby.data() != nullptr) {
    return nearby;
  }
  const auto key = [](const PlacedExtent& read) {
    return std::tuple(read.extent.file, read.extent.offset);
  };
  const auto after = std::ranges::upper_bound(reads_, std::tuple(file, offset), {}, key);
  if (after != reads_.begin()) {
    const auto read = static_cast<std::size_t>(after - reads_.begin()) - 1;
    last_.store(read, std::memory_order_relaxed);
    const auto found = in_read(read, file, offset, length);
    if (found.data() != nullptr) return found;
  }
  throw IndexMismatch(ErrorKind::corrupt,
                      fmt::format("{} bytes are needed that the index did not name", length), "",
                      {.offset = offset});
}

std::span<const std::byte> MappedFileBytes::at(std::uint32_t file, std::uint64_t offset,
                                               std::uint64_t length) const {
  const auto map = maps_[file];
  if (offset <= map.size() && length <= map.size() - offset) {
    note_mapped(map.data() + offset);
    return map.subspan(offset, length);
  }
  throw IndexMismatch(ErrorKind::corrupt, "the index names bytes behind the end of the file", "",
                      {.offset = offset});
}

std::vector<PlacedExtent> place_extents(std::span<const FileExtent> extents,
                                        std::uint64_t gap_bytes) {
  std::vector<PlacedExtent> reads;
  for (const FileExtent& extent : extents) {
    FileExtent* last = reads.empty() ? nullptr : &reads.back().extent;
    const std::uint64_t end = last == nullptr ? 0 : last->offset + last->length;
    if (last != nullptr && last->file == extent.file &&
        (extent.offset <= end || extent.offset - end <= gap_bytes)) {
      last->length = std::max(end, extent.offset + extent.length) - last->offset;
    } else if (extent.length > 0) {
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

FetchReads fetch_through(const DataSet& data, BulkReader& bulk) {
  return [&](const Plan&, std::span<const PlacedExtent> reads, std::span<std::byte> memory) {
    bulk.read(requests_of(data, reads, memory), [](std::size_t) {});
  };
}

SampleReader::SampleReader(const DataSet& data, const SampleReaderOptions& options)
    : data_(data),
      gap_bytes_(options.gap_bytes),
      bulk_(make_bulk_reader(data.whole(), options.engine, options.bulk)),
      fetch_(fetch_through(data, *bulk_)) {}

/// Once more where an index turns out to be wrong about the files, and they tell otherwise.
void SampleReader::read(const std::vector<IdRun>& runs) {
  try {
    return bring(runs);
  } catch (const IndexMismatch& mismatch) {
    data_.check_unchanged();        // a writer at work would explain it as well
    data_.give_up_index(mismatch);  // or another thread has: the next plan finds out anew
  }
  bring(runs);
}

void SampleReader::bring(std::span<const IdRun> runs) {
  plan_ = data_.plan_runs(runs);
  if (!maps_.empty()) {
    find(MappedFileBytes(maps_));
    return data_.check_unchanged();
  }
  reads_ = place_extents(plan_->extents(), gap_bytes_);
  const auto memory = memory_.get(bytes_of(reads_));
  read_into(memory_, [&] { fetch_(*plan_, reads_, memory); });
  for (std::size_t i = 0; i < reads_.size(); ++i) {
    const std::uint32_t file = reads_[i].extent.file;
    if (i == 0 || reads_[i - 1].extent.file != file) data_.check_unchanged(file);
  }
  find(PlacedBytes(reads_, memory));
}

void SampleReader::find(const FileBytes& bytes) {
  const auto scratch = scratch_.get(plan_->scratch_bytes());
  const std::size_t of_each = data_.facts().part_count();
  plan_->decode_all(bytes, scratch);
  keys_.resize(plan_->size());
  parts_.resize(plan_->size() * of_each);
  plan_->unpack(of_each, bytes, scratch, [&](const FoundSample& found) {
    keys_[found.position] = found.key;
    std::ranges::copy(found.parts, &parts_[found.position * of_each]);
  });
}

std::span<const std::byte> SampleReader::value(std::size_t position) {
  const DataSetFacts& facts = data_.facts();
  if (facts.values != DataSetFacts::Values::in_parts) return value_in_place(facts, parts(position));
  value_.resize(value_bytes(facts, parts(position)));
  write_value(facts, parts(position), value_);
  return value_;
}

}  // namespace forebay
