// Pages of a snapshot by number, whichever engine brings their bytes.
//
// With a mapping the bytes stay in place, else they come through a ReadCache. Either way each
// number is checked against the snapshot and the file before it is used, and damage is told apart
// from a mapping that faulted (io) and from a writer that recycled the page (changed).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "forebay/storage.hpp"
#include "format/lmdb/page.hpp"
#include "format/lmdb/snapshot.hpp"

namespace forebay::lmdb {

// Recently read runs of a file, for reading page by page through explicit reads.
//
// A miss reads a run of several pages. When it begins where a cached run ends, the access is
// sequential and the new run is twice as long, up to kLargestRun; else it is kSmallestRun. So a
// lookup by key reads little, and a walk reads in large requests, also when it alternates between
// places of the file (leaves here, values there).
//
// One thread at a time. A returned span stays valid over the next kRuns - 1 fetches.

class ReadCache {
 public:
  static constexpr std::size_t kRuns = 16;
  static constexpr std::size_t kSmallestRun = std::size_t{16} * 1024;
  static constexpr std::size_t kLargestRun = std::size_t{256} * 1024;

  /// `end`: where the file's bytes end; no read goes past it.
  ReadCache(std::shared_ptr<const File> file, std::uint64_t end);

  /// The bytes from `offset` on. offset + size <= end, size <= kLargestRun.
  std::span<const std::byte> fetch(std::uint64_t offset, std::size_t size);
  /// Reads any number of bytes into a buffer of their own, valid until the next call of large().
  std::span<const std::byte> large(std::uint64_t offset, std::size_t size);

  std::uint64_t requests() const { return requests_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Run {
    std::uint64_t offset = 0;
    std::size_t size = 0;
    std::size_t capacity = 0;
    std::uint64_t used_at = 0;
    std::unique_ptr<std::byte[]> bytes;

    bool holds(std::uint64_t from, std::size_t length) const {
      return from >= offset && from - offset <= size && size - (from - offset) >= length;
    }
  };

  Run* find(std::uint64_t offset, std::size_t size);
  std::size_t length_of_run(std::uint64_t offset, std::size_t size) const;
  Run& oldest();
  void go_forward();
  void read(std::uint64_t offset, std::span<std::byte> out);

  std::shared_ptr<const File> file_;
  std::uint64_t end_;
  bool forward_ = false;  ///< the file is read on, or values at length: no mere look into it
  std::array<Run, kRuns> runs_;
  std::size_t last_ = 0;  ///< the run that served last: most fetches hit it again
  std::unique_ptr<std::byte[]> large_;
  std::size_t large_capacity_ = 0;
  std::uint64_t clock_ = 0;
  std::uint64_t requests_ = 0;
  std::uint64_t bytes_ = 0;
};

struct PageCounters {
  std::uint64_t requests = 0;  ///< explicit reads
  std::uint64_t bytes = 0;     ///< of those reads; with a mapping: of the pages used
  std::uint64_t pages = 0;     ///< pages looked at, one counted again when come back to
};

/// One thread at a time.
class PageReader final : public DamageExplainer {
 public:
  explicit PageReader(std::shared_ptr<const Snapshot> snapshot);

  const Snapshot& snapshot() const { return *snapshot_; }
  std::uint32_t page_size() const { return page_size_; }

  /// A branch or leaf. Valid over the next few calls.
  Page tree_page(PageNumber number);
  /// The value of `size` bytes in the overflow run that starts at `first`. Valid until the next
  /// call of value() where bytes are read, as long as this object where they are mapped.
  std::span<const std::byte> value(PageNumber first, std::uint64_t size);
  /// Header of the overflow run at `first`, checked to hold `size` bytes inside the file.
  PageHeader overflow_header(PageNumber first, std::uint64_t size);

  PageCounters counters() const;
  /// What was read so far served to tell what the data set is, and is no part of reading it.
  void count_from_here() { before_ = all_counters(); }
  /// Told from now on of the pages that hold records, leaves and overflow runs, when they are
  /// looked at; empty: nobody. Not of branch pages: these are few, and lead to records of others as
  /// well.
  using Watch = std::function<void(PageNumber first, std::uint64_t count)>;
  void watch(Watch watch) { watch_ = std::move(watch); }
  Error explain(PageNumber page, const std::string& fault) const override;
  [[noreturn]] void damaged(PageNumber page, const std::string& fault) const {
    throw explain(page, fault);
  }

 private:
  std::span<const std::byte> bytes(PageNumber first, std::uint64_t pages, std::uint64_t size);
  PageCounters all_counters() const;
  void tell(PageNumber first, std::uint64_t count) const {
    if (watch_) watch_(first, count);
  }
  PageHeader check_overflow(std::span<const std::byte> run, PageNumber first,
                            std::uint64_t size) const;

  std::shared_ptr<const Snapshot> snapshot_;
  std::uint32_t page_size_;
  std::uint64_t available_pages_;   ///< pages wholly inside the file
  std::span<const std::byte> map_;  ///< empty when bytes are read
  std::optional<ReadCache> cache_;  ///< when they are
  PageNumber last_tree_page_ = kNoPage;
  std::uint64_t pages_ = 0;
  PageCounters before_;  ///< not counted
  Watch watch_;
};

}  // namespace forebay::lmdb
