// An LMDB data set, opened for reading without liblmdb: one tree of one snapshot.
//
//   Database --> Snapshot (meta page, reader slot) --> File (mmap or pread)
//            \-> Tree ------> PageReader ------------/
//
// It never writes, creates no file and takes no lock of its own. Where a lock file is usable it
// holds one of liblmdb's places in the table of readers, so that a writer spares the snapshot.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/lmdb/dataset_path.hpp"
#include "format/lmdb/snapshot.hpp"
#include "format/lmdb/tree.hpp"
#include "format/record_source.hpp"

namespace forebay::lmdb {

/// One thread at a time. Copying cursors to another Database of the same snapshot is fine.
class Database {
 public:
  /// Opens `path` ("DIR", "FILE", either with "#name"). Throws not_found, usage (the main database
  /// holds only named ones and no name was given: the message lists them), unsupported, corrupt,
  /// io, changed (a writer was quicker than every attempt).
  static Database open(const std::string& path, Engine engine);
  /// As open(), taking no place in the table of readers and looking at no lock file: a writer may
  /// end the snapshot, which check_unchanged() tells.
  static Database open_unheld(const std::string& path, Engine engine);
  /// Opens the tree `name` (empty: main) of bytes that are at hand, taking no slot.
  static Database open(std::shared_ptr<const File> file, const std::string& name = {});
  /// As open(), but a main database that holds nothing but named ones is opened as well. For
  /// looking at it: its records are no samples.
  static Database open_container(const std::string& path, Engine engine);
  /// Opens the tree `name` of a snapshot; `allow_named` as open_container.
  static Database open(std::shared_ptr<const Snapshot> snapshot, const std::string& name,
                       bool allow_named);

  /// As given to open.
  const std::string& path() const { return path_; }
  const std::string& name() const { return name_; }
  std::uint64_t entries() const { return tree_.entries(); }
  unsigned depth() const { return tree_.header().empty() ? 0 : tree_.header().depth; }
  std::uint32_t page_size() const { return snapshot_->page_size(); }
  std::uint64_t txn_id() const { return snapshot_->meta().transaction; }
  PageNumber last_page() const { return snapshot_->meta().last_page; }
  bool holds_slot() const { return snapshot_->slot() != nullptr; }
  DatasetFingerprint fingerprint() const;
  /// What entries of the user's cache go by: the fingerprint and what the root page holds, as data
  /// sets of one shape mostly differ in the keys there. The same for all copies. Reads that page.
  std::string cache_identity();
  /// Of leaves and overflow runs.
  std::uint64_t stored_bytes() const;

  /// Whether named databases may lie among the records of this one. Where not, the main tree and
  /// the free list have all pages of the file, and there are too many leaves to look at.
  bool may_hold_databases();
  /// Names of the named databases, in key order. Walks the whole main tree.
  std::vector<std::string> named_databases();

  Tree& tree() { return tree_; }
  PageReader& pages() { return *pages_; }
  const PageReader& pages() const { return *pages_; }
  const Snapshot& snapshot() const { return *snapshot_; }
  const std::shared_ptr<const Snapshot>& shared_snapshot() const { return snapshot_; }

  /// Throws changed when a writer may have recycled pages of the snapshot, io when a mapping
  /// faulted. Call after bytes were used and before they are trusted.
  void check_unchanged() const;
  /// The first record, the last one and one between them, for check_unchanged(): what is copied
  /// over the file changes some. Walks to them.
  void remember_records() const;

 private:
  Database(std::shared_ptr<const Snapshot> snapshot, std::unique_ptr<PageReader> pages,
           const TreeHeader& header, std::string name);

  std::string path_;
  std::string name_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::unique_ptr<PageReader> pages_;
  Tree tree_;
};

/// A snapshot of the newest state of `path` over `engine`, protected by a slot where possible.
std::shared_ptr<const Snapshot> open_snapshot(const DatasetPath& path, Engine engine);
/// The state that `slot` holds, or without one the newest. Throws changed when the state of the
/// slot is gone already: two transactions were committed before its meta page was read.
std::shared_ptr<const Snapshot> open_snapshot(const DatasetPath& path, Engine engine,
                                              std::shared_ptr<const ReaderSlot> slot);

// What an index has to know of the tree that it is for: plain numbers, from the meta page.

struct TreeFacts {
  std::string file;         ///< path of the data file, for messages
  std::string fingerprint;  ///< Database::fingerprint()
  std::uint64_t entries = 0;
  std::uint64_t leaf_pages = 0;
  std::uint64_t overflow_pages = 0;
  std::uint32_t page_size = 0;
  std::uint16_t tree_flags = 0;  ///< how keys compare
  PageNumber end_page = 0;       ///< pages from here on are past the snapshot or the file
};

/// Of a database that passed its opening checks, so the counts are bounded by the file's pages.
TreeFacts facts_of(Database& database);

}  // namespace forebay::lmdb
