#include "format/lmdb/provenance/leaf_table.hpp"

#include <fmt/format.h>
#include <zstd.h>

#include <limits>
#include <utility>

#include "forebay/error.hpp"

namespace forebay::lmdb {
namespace {

enum Stream : std::size_t { kRecords, kLeafPages, kRunCounts, kSlots, kRunPages, kRunLengths };

constexpr int kCompression = 6;
constexpr std::uint64_t kMostVarint = 10;  ///< bytes of a number

/// Three numbers a leaf and three a run at most, and the lengths of the streams.
std::uint64_t most_raw_bytes(std::uint64_t samples, std::uint64_t leaves) {
  return kMostVarint * (6 + 3 * leaves + 3 * samples);
}

std::vector<std::byte> compress(std::span<const std::byte> raw) {
  std::vector<std::byte> packed(ZSTD_compressBound(raw.size()));
  const std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), kCompression);
  if (ZSTD_isError(size) != 0) throw Error(ErrorKind::io, ZSTD_getErrorName(size));
  packed.resize(size);
  return packed;
}

std::vector<std::byte> decompress(std::span<const std::byte> packed, std::uint64_t raw_size) {
  std::vector<std::byte> raw(raw_size);
  const std::size_t size = ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size());
  if (ZSTD_isError(size) != 0 || size != raw_size) {
    throw Error(ErrorKind::corrupt, "a segment does not decompress to its length");
  }
  return raw;
}

/// Walks the six streams in step.
class Decoder {
 public:
  Decoder(std::span<const std::byte> raw, PageNumber base) : next_(base) {
    ByteReader reader(raw);
    std::array<std::uint64_t, 6> sizes{};
    for (std::uint64_t& size : sizes) size = reader.varint(raw.size());
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      streams_[i] = ByteReader(reader.raw(sizes[i]));
    }
    reader.end();
  }

  LeafLayout next() {
    LeafLayout leaf;
    leaf.records = static_cast<std::uint32_t>(streams_[kRecords].varint(kMaxSegmentSamples));
    leaf.page = next_ + streams_[kLeafPages].difference();
    next_ = leaf.page + 1;
    const std::uint64_t runs = streams_[kRunCounts].varint(leaf.records);
    runs_.clear();
    for (std::uint64_t i = 0, slot = 0; i < runs; ++i) {
      slot += streams_[kSlots].varint(leaf.records);
      if (slot >= leaf.records) throw Error(ErrorKind::corrupt, "a run of no record");
      add_run(static_cast<std::uint16_t>(slot++));
    }
    leaf.runs = runs_;
    return leaf;
  }

  void end() const {
    for (const ByteReader& stream : streams_) stream.end();
  }

 private:
  void add_run(std::uint16_t slot) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    LeafRun run{.page = next_ + streams_[kRunPages].difference(), .pages = 0, .slot = slot};
    run.pages = static_cast<std::uint32_t>(streams_[kRunLengths].varint(kMost));
    next_ = run.page + run.pages;
    runs_.push_back(run);
  }

  std::array<ByteReader, 6> streams_{ByteReader({}), ByteReader({}), ByteReader({}),
                                     ByteReader({}), ByteReader({}), ByteReader({})};
  PageNumber next_;
  std::vector<LeafRun> runs_;
};

}  // namespace

void SegmentEncoder::add(const LeafLayout& leaf) {
  if (leaves_ == 0) base_ = next_ = leaf.page;
  streams_[kRecords].varint(leaf.records);
  streams_[kLeafPages].difference(leaf.page - next_);
  streams_[kRunCounts].varint(leaf.runs.size());
  next_ = leaf.page + 1;
  std::uint32_t slot = 0;
  for (const LeafRun& run : leaf.runs) {
    streams_[kSlots].varint(run.slot - slot);
    streams_[kRunPages].difference(run.page - next_);
    streams_[kRunLengths].varint(run.pages);
    slot = run.slot + 1U;
    next_ = run.page + run.pages;
  }
  ++leaves_;
  samples_ += leaf.records;
}

EncodedSegment SegmentEncoder::finish() {
  ByteWriter raw;
  for (const ByteWriter& stream : streams_) raw.varint(stream.size());
  for (ByteWriter& stream : streams_) {
    raw.raw(stream.bytes());
    stream.clear();
  }
  ByteWriter bytes;
  bytes.varint(raw.size());
  bytes.raw(compress(raw.bytes()));
  EncodedSegment segment{.samples = std::exchange(samples_, 0),
                         .leaves = std::exchange(leaves_, 0),
                         .base = base_,
                         .bytes = bytes.take()};
  return segment;
}

void decode_segment(std::span<const std::byte> bytes, PageNumber base, std::uint64_t samples,
                    std::uint64_t leaves, const LeafSink& sink) {
  ByteReader reader(bytes);
  const std::uint64_t raw_size = reader.varint(most_raw_bytes(samples, leaves));
  const std::vector<std::byte> raw = decompress(reader.rest(), raw_size);
  Decoder decoder(raw, base);
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < leaves; ++i) {
    const LeafLayout leaf = decoder.next();
    found += leaf.records;
    sink(leaf);
  }
  decoder.end();
  if (found == samples) return;
  throw Error(ErrorKind::corrupt, fmt::format("a segment of {} records holds {}", samples, found));
}

}  // namespace forebay::lmdb
