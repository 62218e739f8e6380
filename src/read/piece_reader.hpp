// One way to get the records of a root's pieces into the stage. The ways differ in how they locate
// records and in how they read them, not in what they deliver.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "core/non_copyable.hpp"
#include "forebay/options.hpp"
#include "format/record_source.hpp"
#include "read/window_plan.hpp"

namespace forebay {

/// Where a root's time went, and what it asked of the file system.
struct ReadTotals {
  std::int64_t seek_ns = 0;  ///< locating records, waiting for who locates them included
  std::int64_t read_ns = 0;
  std::int64_t decode_ns = 0;         ///< decoding chunks and putting samples together
  double turn_seconds = 0;            ///< waiting for its turn to read (staggering)
  int roots_at_once = 0;              ///< as settled; 0 while it is tried out
  KnownStagger found;                 ///< where it was tried out
  std::string turns;                  ///< in words, where it was tried out and is settled
  std::int64_t wait_ns = 0;           ///< for a free buffer
  std::uint64_t missed_pages = 0;     ///< speculation: needed, and not read ahead
  std::uint64_t redundant_pages = 0;  ///< speculation: read ahead, and not needed
  std::uint64_t chunks_decoded = 0;   ///< and the bytes that came out of them
  std::uint64_t bytes_decoded = 0;
  std::uint64_t index_bytes = 0;  ///< memory of the index, shared by the node's roots
  SourceCounters source;
};

/// The same, written by the reading thread after each phase and read by any. Thread-safe.
class ReadFigures {
 public:
  ReadTotals get() const {
    const std::lock_guard lock(mutex_);
    return totals_;
  }
  void set(const ReadTotals& totals) {
    const std::lock_guard lock(mutex_);
    totals_ = totals;
  }

 private:
  mutable std::mutex mutex_;
  ReadTotals totals_;
};

/// Used by the reading thread of one root.
class PieceReader : private NonCopyable {
 public:
  virtual ~PieceReader() = default;

  /// Brings this root's records of `part` into the stage, in its area of the window's buffer, which
  /// it starts over in unless `part` is the rest of a window. `next` is what comes after it: that
  /// may be begun meanwhile, where its buffer is free and no other root has to be waited for.
  /// Throws what the source throws, and cancelled when `give_up` ended a wait for other roots.
  virtual void read(const WindowPart& part, const std::optional<WindowPart>& next) = 0;
  /// Throws `changed` when a writer may have touched what was read.
  virtual void check_unchanged() = 0;
  /// Without wait_ns, which is the caller's.
  virtual ReadTotals totals() const = 0;
  /// Whether reads were left behind that may still write into the stage: it must not be unmapped.
  virtual bool abandoned() const { return false; }
  /// This root reads no more: those who wait for it need not. Local; called once, at the end.
  virtual void leave() {}
};

}  // namespace forebay
