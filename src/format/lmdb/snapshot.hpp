// Which state of the database is read, and whether it is still there.
//
// A file has two meta pages, the newer of which is the state to read. A writer commits transaction
// T + 1 by writing new pages elsewhere and then the other meta page, so the pages of state T stay
// as they are, until they are recycled. When?
//
//   * Transaction F frees the pages that it replaced: pages of states up to F - 1. It records
//     them in the free list under its own number F.
//   * Transaction X takes pages from records with numbers below `oldest` only, and `oldest` is the
//     smaller of X - 1 and the oldest transaction in the table of readers. So with no reader in
//     the table, X takes pages that were freed by F <= X - 2, that is pages of states <= X - 3.
//   * Pages of state T are thus in danger from X = T + 3 on. X may write pages, by spilling or into
//     a writable map, as soon as it runs: once T + 2 is committed.
//
// So without a place in the table of readers (liblmdb gives one to its own read transactions) the
// snapshot is intact as long as the newest committed transaction is at most T + 1. With one,
// `oldest` stays at most T, only records F < T are taken, and any number of commits may follow.
//
// A meta page that a crash left torn (wrong magic, version, flags, number or page size) is passed
// over when the other one is sound, as the state before it is still whole. A sound meta page whose
// trees cannot be in a file of this size is an error: the file was cut or damaged.
//
// Meta pages tell of writers of LMDB alone. Another data set of the same shape that is copied over
// the file may have the same ones. Its times tell that somebody has written, but not who; so then
// a few records of the snapshot, which no writer of LMDB touches, are compared with what they were.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "forebay/storage.hpp"
#include "format/lmdb/layout.hpp"

namespace forebay::lmdb {

class ReaderSlot;

/// The two meta pages as found. At least one is usable.
struct MetaPages {
  Meta newest;
  std::string damaged;  ///< what is wrong with the other one; empty when both are sound

  /// The sound ones, by page number.
  std::unique_ptr<const Meta> metas[2];
};

/// Reads both meta pages. Throws unsupported or corrupt with the reason when neither is usable.
MetaPages read_meta_pages(const File& file);

/// Whether a meta page may begin `file`, of this or another platform or version, or follow one that
/// is damaged.
bool looks_like_lmdb(const File& file);

/// Immutable. Safe from many threads.
class Snapshot {
 public:
  /// The newest state of `file`. With a `slot`, the state that the slot holds.
  /// Throws changed when the slot's state is gone: take a new slot and try again.
  explicit Snapshot(std::shared_ptr<const File> file, std::shared_ptr<const ReaderSlot> slot = {});

  const File& file() const { return *file_; }
  const std::shared_ptr<const File>& shared_file() const { return file_; }
  const Meta& meta() const { return meta_; }
  std::uint32_t page_size() const { return meta_.page_size(); }
  /// Pages that the file had at open; the last ones may be missing when they are free.
  std::uint64_t file_pages() const { return file_pages_; }
  const std::string& damaged_meta() const { return damaged_meta_; }
  const ReaderSlot* slot() const { return slot_.get(); }

  /// Whether the file has times that tell of writers.
  bool has_times() const { return file_->descriptor() >= 0; }
  /// Remembers bytes of the snapshot's pages, the first ones of many, for check_unchanged().
  /// Thread-safe.
  void remember(std::uint64_t offset, std::uint64_t size) const;
  bool remembers(std::uint64_t offset) const;
  /// Reads the meta pages again. Throws `changed` when a writer may have recycled pages, or another
  /// program has written to the file.
  void check_unchanged() const;

 private:
  struct Known {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t hash = 0;
  };

  std::uint64_t hash_now(const Known& known) const;
  void check_known(const FileFingerprint& now) const;

  std::shared_ptr<const File> file_;
  std::shared_ptr<const ReaderSlot> slot_;
  Meta meta_;
  std::string damaged_meta_;
  std::uint64_t used_bytes_ = 0;  ///< from the start of the file; fewer means that it was cut
  std::uint64_t file_pages_ = 0;
  mutable std::mutex mutex_;
  mutable FileFingerprint seen_;  ///< when all that is known was right
  mutable std::vector<Known> known_;
};

}  // namespace forebay::lmdb
