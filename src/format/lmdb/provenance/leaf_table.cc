#include "format/lmdb/provenance/leaf_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "forebay/error.hpp"
#include "format/lmdb/leaf_index.hpp"

namespace forebay::lmdb {
namespace {

/// Bounds the directory in memory: 64 MiB, enough for 69 thousand million records.
constexpr std::uint64_t kMostSegments = std::uint64_t{1} << 22;

SegmentGroup read_group(ByteReader& in) {
  const std::uint64_t rest = in.rest().size();
  SegmentGroup group{.repeat = in.varint(kMostSegments),
                     .samples = in.varint(kMaxSegmentSamples),
                     .leaves = in.varint(kMaxSegmentSamples),
                     .base = in.varint(),
                     .bytes = in.varint(rest)};
  if (group.repeat > 1) group.distance = in.difference();
  return group;
}

}  // namespace

std::uint64_t LeafTable::memory_bytes() const {
  return groups_.capacity() * sizeof(SegmentGroup) + bodies_.capacity() + keys_.memory_bytes();
}

void LeafTable::append(const EncodedSegment& segment) {
  samples_ += segment.samples;
  leaves_ += segment.leaves;
  if (!groups_.empty()) {
    SegmentGroup& last = groups_.back();
    const std::uint64_t distance = segment.base - (last.base + (last.repeat - 1) * last.distance);
    const auto body = std::span(bodies_).subspan(last_body_);
    if (last.samples == segment.samples && last.leaves == segment.leaves &&
        (last.repeat == 1 || last.distance == distance) &&
        std::ranges::equal(body, segment.bytes)) {
      last.distance = distance;
      ++last.repeat;
      return;
    }
  }
  last_body_ = bodies_.size();
  bodies_.insert(bodies_.end(), segment.bytes.begin(), segment.bytes.end());
  groups_.push_back({.samples = segment.samples,
                     .leaves = segment.leaves,
                     .base = segment.base,
                     .bytes = segment.bytes.size()});
}

void LeafTable::append(const LeafTable& part) {
  if (part.leaves_ == 0) return;
  const bool complete = leaves_ == 0 || has_keys();
  if (complete) keys_.append(part.keys_, samples_);
  if (!complete || !part.has_keys()) keys_ = {};
  samples_ += part.samples_;
  leaves_ += part.leaves_;
  last_body_ = bodies_.size() + part.last_body_;
  bodies_.insert(bodies_.end(), part.bodies_.begin(), part.bodies_.end());
  groups_.insert(groups_.end(), part.groups_.begin(), part.groups_.end());
}

void LeafTable::shorten() {
  std::uint64_t segments = 0;
  for (const SegmentGroup& group : groups_) segments += group.repeat;
  if (segments > 2 * groups_.size()) keys_.drop_digests();
}

void LeafTable::write(ByteWriter& out) const {
  out.varint(samples_);
  out.varint(leaves_);
  out.varint(groups_.size());
  for (const SegmentGroup& group : groups_) {
    out.varint(group.repeat);
    out.varint(group.samples);
    out.varint(group.leaves);
    out.varint(group.base);
    out.varint(group.bytes);
    if (group.repeat > 1) out.difference(group.distance);
  }
  out.raw(bodies_);
  keys_.write(out);
}

void LeafTable::check_groups() const {
  std::uint64_t samples = 0, leaves = 0, segments = 0;
  for (const SegmentGroup& group : groups_) {
    // Each factor is small: the products cannot overflow.
    samples += group.repeat * group.samples;
    leaves += group.repeat * group.leaves;
    segments += group.repeat;
    if (group.repeat == 0 || group.leaves == 0 || group.samples < group.leaves ||
        segments > kMostSegments || samples > samples_ || leaves > leaves_) {
      throw Error(ErrorKind::corrupt, "its directory is impossible");
    }
  }
  if (samples == samples_ && leaves == leaves_) return;
  throw Error(ErrorKind::corrupt,
              fmt::format("its directory has {} records on {} leaves instead of {} on {}", samples,
                          leaves, samples_, leaves_));
}

LeafTable LeafTable::read(ByteReader& in, std::uint64_t samples, std::uint64_t leaves) {
  LeafTable table;
  table.samples_ = in.varint(samples);
  table.leaves_ = in.varint(leaves);
  // A group takes five bytes and more.
  const std::uint64_t groups = in.varint(std::min(kMostSegments, in.rest().size() / 5));
  table.groups_.reserve(groups);
  for (std::uint64_t i = 0; i < groups; ++i) table.groups_.push_back(read_group(in));
  table.check_groups();
  std::uint64_t bytes = 0;
  for (const SegmentGroup& group : table.groups_) {
    table.last_body_ = bytes;
    bytes += group.bytes;
  }
  const auto bodies = in.raw(bytes);
  table.bodies_.assign(bodies.begin(), bodies.end());
  table.keys_ = KeyFacts::read(in, table.leaves_);
  return table;
}

void LeafTableBuilder::add(const LeafLayout& leaf) {
  if (segment_.leaves() >= segment_leaves_ || segment_.samples() >= segment_samples_) {
    table_.append(segment_.finish());
  }
  segment_.add(leaf);
  samples_ += leaf.records;
  ++leaves_;
}

void LeafTableBuilder::add(const SeenLeaf& leaf) {
  keys_.add({.leaf = leaves_,
             .first_sample = samples_,
             .page = leaf.layout.page,
             .first = leaf.first_key,
             .last = leaf.last_key},
            leaf.layout.records);
  ++leaves_with_keys_;
  add(leaf.layout);
}

LeafTable LeafTableBuilder::finish() {
  if (segment_.leaves() > 0) table_.append(segment_.finish());
  if (leaves_with_keys_ == leaves_) table_.set_keys(keys_.take());
  return std::move(table_);
}

TableLeaves::TableLeaves(LeafTable table) : table_(std::move(table)) {
  Segment at;
  std::size_t body = 0;
  directory_.push_back(at);
  for (const SegmentGroup& group : table_.groups()) {
    starts_.push_back({.segment = directory_.size() - 1, .body = body});
    body += group.bytes;
    for (std::uint64_t i = 0; i < group.repeat; ++i) {
      at.first_sample += group.samples;
      at.first_leaf += group.leaves;
      directory_.push_back(at);
    }
  }
}

void TableLeaves::expand(std::size_t segment, const LeafSink& sink) {
  const auto after = std::ranges::upper_bound(starts_, segment, {}, &GroupStart::segment);
  const auto number = static_cast<std::size_t>(after - starts_.begin()) - 1;
  const SegmentGroup& group = table_.groups()[number];
  const GroupStart& start = starts_[number];
  const PageNumber base = group.base + (segment - start.segment) * group.distance;
  decode_segment(table_.bodies().subspan(start.body, group.bytes), base, group.samples,
                 group.leaves, sink);
}

std::uint64_t TableLeaves::memory_bytes() const {
  return table_.memory_bytes() + directory_.capacity() * sizeof(Segment) +
         starts_.capacity() * sizeof(GroupStart);
}

SeenLeaf look_at_leaf(const Page& page, std::uint32_t page_size, std::vector<LeafRun>& runs) {
  if (!page.is_leaf()) page.damaged("a branch page where a leaf belongs");
  SeenLeaf leaf{.layout = {.page = page.number(), .records = page.count(), .runs = {}},
                .first_key = page.node(0).key,
                .last_key = page.node(page.count() - 1).key};
  runs.clear();
  for (unsigned slot = 0; slot < page.count(); ++slot) {
    const Node node = page.node(slot);
    if (!node.is_overflow()) continue;
    runs.push_back({.page = node.overflow_page(),
                    .pages = static_cast<std::uint32_t>(overflow_pages(node.value_size, page_size)),
                    .slot = static_cast<std::uint16_t>(slot)});
  }
  leaf.layout.runs = runs;
  return leaf;
}

}  // namespace forebay::lmdb
