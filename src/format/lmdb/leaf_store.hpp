// Leaves and overflow runs, expanded on demand into memory that the roots of a node may share.
//
// Layout of the memory, which starts out as zeros and stays untouched, hence sparse, where no
// segment was needed:
//
//   +--------+-----------------+----------------------+-------------------------------+
//   | header | segments, 4 B   | leaves, 16 B each    | cells, 8 B a record           |
//   |  64 B  | empty/busy/ready| page, records, first | overflow run of the record,   |
//   |        |                 | sample, touched      | or 0; none without such pages |
//   +--------+-----------------+----------------------+-------------------------------+
//
// A segment is claimed by compare-and-swap, filled by one process, and read-only from then on. The
// others sleep until it is ready, with a deadline. Only the marks of touched leaves change later.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "format/lmdb/database.hpp"
#include "format/lmdb/leaf_producer.hpp"
#include "format/lmdb/page.hpp"

namespace forebay::lmdb {

/// Where an index lives. All indexes over the same bytes must come from equal producers.
struct IndexMemory {
  /// At least required_bytes(), all zero before the first index uses it, aligned to 8. Outlives the
  /// index.
  std::span<std::byte> bytes;
  /// Called before [offset, offset + size) is written for the first time: SharedMemory::reserve.
  /// May be empty.
  std::function<void(std::size_t offset, std::size_t size)> reserve = {};
  /// How long to wait for another process that fills a segment.
  std::chrono::milliseconds patience = std::chrono::seconds(60);
};

/// Bytes that an index over `producer`'s leaves needs, most of them never touched.
std::uint64_t required_bytes(const LeafProducer& producer, const TreeFacts& facts);

/// The overflow run of a record; no pages: the value lies in the leaf.
struct StoredRun {
  PageNumber page = 0;
  std::uint64_t pages = 0;
};

/// A leaf and the samples on it.
struct LeafPosition {
  std::size_t segment = 0;
  std::uint64_t leaf = 0;
  std::uint64_t first = 0;  ///< its first sample
  std::uint32_t records = 0;
  PageNumber page = 0;

  std::uint64_t end() const { return first + records; }
};

/// Local, one thread at a time. Methods that may expand throw IndexMismatch when the producer is
/// wrong, communication when another process does not finish.
class LeafStore {
 public:
  /// As LeafIndex.
  LeafStore(std::unique_ptr<LeafProducer> producer, TreeFacts facts,
            const DamageExplainer& explainer, IndexMemory memory);

  /// The leaf of `sample` < entries.
  LeafPosition find(std::uint64_t sample);
  /// Moves to the next leaf, which exists.
  void advance(LeafPosition& position);
  /// Of a sample whose segment was found or advanced to.
  StoredRun run(std::uint64_t sample) const {
    if (cells_ == nullptr) return {};
    const std::uint64_t cell = cells_[sample];
    return {cell >> kRunBits, cell & ((std::uint64_t{1} << kRunBits) - 1)};
  }
  /// Whether any record has an overflow run.
  bool has_runs() const { return cells_ != nullptr; }

  /// Whether a process of the node has checked the leaf's bytes.
  bool touched(const LeafPosition& position) const;
  void touch(const LeafPosition& position);

  const TreeFacts& facts() const { return facts_; }
  const LeafProducer& producer() const { return *producer_; }
  const DamageExplainer& explainer() const { return *explainer_; }
  /// Whether this is the first index over this memory to be given up.
  bool give_up();
  std::uint64_t memory_bytes() const;

  /// Throws IndexMismatch naming the page; io or changed where that explains it.
  [[noreturn]] void mismatch(PageNumber page, const std::string& text) const;

 private:
  struct Header;
  struct Leaf;
  class Filler;

  /// Values have less than 4 GiB, hence runs less than 2^21 pages.
  static constexpr unsigned kRunBits = 21;
  static constexpr PageNumber kMostPages = PageNumber{1} << (64 - kRunBits);

  void check_directory() const;
  void attach();
  std::size_t segment_of(std::uint64_t sample) const;
  void ensure(std::size_t segment);
  void fill(std::size_t segment);
  void write_segment(std::size_t segment);
  void wait_ready(std::size_t segment) const;

  std::unique_ptr<LeafProducer> producer_;
  std::span<const Segment> directory_;
  TreeFacts facts_;
  const DamageExplainer* explainer_;
  IndexMemory memory_;
  Header* header_ = nullptr;
  std::uint32_t* states_ = nullptr;
  Leaf* leaves_ = nullptr;
  std::uint64_t* cells_ = nullptr;  ///< null when the tree has no overflow pages
  std::size_t last_segment_ = 0;    ///< where the previous call ended
};

}  // namespace forebay::lmdb
