// Where is sample i, in a tree of LMDB: leaf_store.hpp says in which pages; here they become
// extents, and the bytes of these become records.
//
// First touch. Once a node, each leaf is checked whole when its bytes arrive: it is a leaf, calls
// itself by its number, has as many records as the index says, its nodes lie inside the page and
// apart, its keys ascend, and what the producer knows of its keys is true. Checked each time, since
// it costs nothing: the count, each node that is used, that the record's overflow run begins and
// ends where the index says, the run's own header, and that neighbouring leaves ascend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/non_copyable.hpp"
#include "format/data_set.hpp"
#include "format/lmdb/leaf_store.hpp"
#include "format/record_source.hpp"

namespace forebay::lmdb {

// Where is record i of a tree? What stands behind the plans of LMDB data (lmdb_set.hpp).
//
//   locate    extents(first, count)          which bytes of the file are needed
//   read      (by the caller, any engine)    brings them into memory, wherever it likes
//   unpack    unpack(first, count, bytes)    finds keys and values in these bytes, in place
//
// Nothing that an index says is believed: unpack() checks it against the bytes, and throws
// IndexMismatch before it hands out a record that the index has wrong.

/// One thread at a time, though several indexes of one node may share memory.
class RecordIndex : private NonCopyable {
 public:
  virtual ~RecordIndex() = default;

  virtual std::uint64_t entries() const = 0;
  /// Appends what samples [first, first + count) need, in sample order: not sorted by offset, and
  /// neighbours that share a page name it once; of file 0. first + count <= entries().
  virtual void extents(std::uint64_t first, std::uint64_t count, std::vector<FileExtent>& out) = 0;
  /// Hands the records to `sink`, in order. Spans lie inside `bytes`.
  /// Throws IndexMismatch; corrupt, unsupported.
  virtual void unpack(std::uint64_t first, std::uint64_t count, const FileBytes& bytes,
                      const RecordSink& sink) = 0;
  /// Notes that the index was found to be wrong. Returns whether this is the first to note it among
  /// those that share its memory, which is who warns of it.
  virtual bool give_up() { return true; }
  /// Memory that the index takes now, in bytes.
  virtual std::uint64_t memory_bytes() const = 0;
};

/// Local, one thread at a time; see RecordIndex.
class LeafIndex final : public RecordIndex {
 public:
  /// `explainer` (the database's PageReader) outlives the index.
  /// Throws IndexMismatch when the directory does not fit the tree; usage when the memory is too
  /// small or holds another index; unsupported for files past 32 PiB.
  LeafIndex(std::unique_ptr<LeafProducer> producer, TreeFacts facts,
            const DamageExplainer& explainer, IndexMemory memory)
      : store_(std::move(producer), std::move(facts), explainer, std::move(memory)) {}

  std::uint64_t entries() const override { return store_.facts().entries; }
  void extents(std::uint64_t first, std::uint64_t count, std::vector<FileExtent>& out) override;
  void unpack(std::uint64_t first, std::uint64_t count, const FileBytes& bytes,
              const RecordSink& sink) override;
  bool give_up() override { return store_.give_up(); }
  /// Memory in use: the filled part of the shared memory (counted once, whoever filled it), and the
  /// producer's own.
  std::uint64_t memory_bytes() const override { return store_.memory_bytes(); }

  const LeafProducer& producer() const { return store_.producer(); }

 private:
  void check_range(std::uint64_t first, std::uint64_t count) const;
  void check_header(const LeafPosition& at, std::span<const std::byte> page) const;
  void check_first_touch(const LeafPosition& at, const Page& page) const;
  void check_run(const LeafPosition& at, unsigned slot, const Node& node) const;
  void unpack_leaf(const LeafPosition& at, const Page& page, std::uint64_t first, std::uint64_t end,
                   const FileBytes& bytes, const RecordSink& sink) const;
  std::span<const std::byte> value_of(const Node& node, const FileBytes& bytes) const;
  std::span<const std::byte> run_value(const Node& node, const FileBytes& bytes) const;
  [[noreturn]] void refuse_nested(const LeafPosition& at, std::uint64_t sample,
                                  const Node& node) const;

  LeafStore store_;
};

}  // namespace forebay::lmdb
