// Where is sample i: leaves and overflow runs, expanded on demand into memory that the roots of a
// node may share.
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
// others sleep until it is ready, with a deadline.
//
// First touch. Once a node, each leaf is checked whole when its bytes arrive: it is a leaf, calls
// itself by its number, has as many records as the index says, its nodes lie inside the page and
// apart, its keys ascend, and what the producer knows of its keys is true. Checked each time, since
// it costs nothing: the count, each node that is used, that the record's overflow run begins and
// ends where the index says, the run's own header, and that neighbouring leaves ascend.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "format/lmdb/leaf_producer.hpp"
#include "format/lmdb/page.hpp"
#include "format/lmdb/tree_facts.hpp"
#include "format/record_index.hpp"

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

/// Local, one thread at a time; see RecordIndex.
class LeafIndex final : public RecordIndex {
 public:
  /// `explainer` (the database's PageReader) outlives the index.
  /// Throws IndexMismatch when the directory does not fit the tree; usage when the memory is too
  /// small or holds another index; unsupported for files past 32 PiB.
  LeafIndex(std::unique_ptr<LeafProducer> producer, TreeFacts facts,
            const DamageExplainer& explainer, IndexMemory memory);
  ~LeafIndex() override;

  std::uint64_t entries() const override { return facts_.entries; }
  void extents(std::uint64_t first, std::uint64_t count, std::vector<Extent>& out) override;
  void unpack(std::uint64_t first, std::uint64_t count, const ExtentBytes& bytes,
              const RecordSink& sink) override;
  bool give_up() override;
  /// Memory in use: the filled part of the shared memory (counted once, whoever filled it), and the
  /// producer's own.
  std::uint64_t memory_bytes() const override;

  const LeafProducer& producer() const { return *producer_; }

 private:
  struct Header;
  struct Leaf;
  struct Position;
  class Filler;

  void check_directory() const;
  void attach();
  void check_range(std::uint64_t first, std::uint64_t count) const;
  std::size_t segment_of(std::uint64_t sample) const;
  void ensure(std::size_t segment);
  void fill(std::size_t segment);
  void write_segment(std::size_t segment);
  void wait_ready(std::size_t segment) const;
  Position position_of(std::uint64_t sample);
  void advance(Position& position);
  [[noreturn]] void mismatch(PageNumber page, const std::string& text) const;

  void check_header(const Position& at, std::span<const std::byte> page) const;
  void check_first_touch(const Position& at, const Page& page) const;
  void check_run(const Position& at, unsigned slot, const Node& node) const;
  void unpack_leaf(const Position& at, const Page& page, std::uint64_t first, std::uint64_t end,
                   const ExtentBytes& bytes, const RecordSink& sink) const;
  std::span<const std::byte> run_value(const Node& node, const ExtentBytes& bytes) const;
  [[noreturn]] void refuse_nested(const Position& at, std::uint64_t sample, const Node& node) const;

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
