// The stage: the buffers in shared memory that roots fill and ranks consume.
//
//   control | entry tables, one a buffer | buffer 0: area of root 0, root 1, .. | buffer 1: ...
//
// Window w lives in buffer w mod K. Two counters that only grow make the protocol, both counted in
// iterations since the start of the order:
//
//   published[root]   iterations below it are in the stage, as far as `root` reads them
//   released[rank]    iterations below it are not looked at any more by `rank`
//
// A rank may read iteration t when published > t for all roots. A root may fill window w when
// released >= (w - K + 1) * T for all ranks, T iterations a window. Entries and data are written
// before `published` is raised (release) and read after it was seen (acquire); nothing else orders
// them. In its own area of the buffer a root either appends keys and values one by one, each value
// aligned for vector loads, or takes room for whole pages of the file and points at the records
// inside them. Where one process alone uses the stage, entries may also point at other memory of
// it, as a mapping of the file: to them that follows where the buffers end.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/gate.hpp"
#include "forebay/communicator.hpp"

namespace forebay {

struct StageShape {
  int ranks = 1;
  int roots = 1;
  int buffers = 2;
  std::uint64_t iterations = 1;  ///< of a window, as it is read
  std::uint64_t entries = 0;     ///< samples a window
  std::uint64_t data_bytes = 0;  ///< memory for keys and values, all buffers together
};

/// Where one sample lies. Shared between processes, hence offsets and no pointers.
struct StageEntry {
  std::uint64_t offset = 0;  ///< of the value, from the start of the data; see extend()
  std::uint64_t value_bytes = 0;
  std::uint64_t sample = 0;
  std::uint64_t key_offset = 0;
  std::uint64_t key_bytes = 0;
};

/// A span of time on the node's monotonic clock.
struct Interval {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// One process's view of a stage. Methods for roots and for consumers may run on two threads.
class Stage {
 public:
  /// Collective over `group`, the ranks that share it. `first_iteration`: where all ranks start.
  Stage(Communicator& group, const StageShape& shape, SharedMemoryKind kind,
        std::uint64_t first_iteration);

  const StageShape& shape() const { return shape_; }
  /// Bytes of a root's area in one buffer.
  std::uint64_t room() const { return area_bytes_; }

  // For roots.

  /// Whether the buffer of `window` may be filled.
  bool free(std::uint64_t window) const;
  /// Waits for that up to `limit`, or until wake(); tells whether it is so.
  bool wait_free(std::uint64_t window, std::chrono::milliseconds limit);
  /// Starts over in `root`'s area of the buffer of `window`.
  void begin(int root, std::uint64_t window);
  /// Stores one sample. Throws usage when the area is full, io when memory is.
  void append(int root, std::uint64_t window, std::uint64_t entry, std::uint64_t sample,
              std::span<const std::byte> key, std::span<const std::byte> value);
  /// Room for `bytes` at a page boundary, to be filled by the caller. Throws as append does.
  std::span<std::byte> take(int root, std::uint64_t window, std::uint64_t bytes);
  /// A copy of `bytes` in `root`'s area. Throws as append does.
  std::span<const std::byte> copy(int root, std::uint64_t window, std::span<const std::byte> bytes);
  /// Lets entries point into `memory`, which `owner` keeps, too: for as long as the stage lives.
  /// Once, before anything is filled, and only where no other process uses the stage.
  void extend(std::span<const std::byte> memory, std::shared_ptr<const void> owner);
  /// Points `entry` at a record inside of room that was taken, at copies, or into what extend()
  /// got.
  void place(std::uint64_t window, std::uint64_t entry, std::uint64_t sample,
             std::span<const std::byte> key, std::span<const std::byte> value);
  /// Where the next append or take in `window` goes; rewind() gives back what came after it.
  std::uint64_t mark(std::uint64_t window) const { return area(window).cursor; }
  void rewind(std::uint64_t window, std::uint64_t mark) { area(window).cursor = mark; }
  /// Makes everything of `root` below `iterations` visible. `blocked` is when the root last waited
  /// for a free buffer.
  void publish(int root, std::uint64_t iterations, Interval blocked);

  // For consumers.

  /// Whether `iteration` is in the stage.
  bool published(std::uint64_t iteration) const;
  /// Waits up to `limit`, or until wake(), for `iteration`; tells whether it is in the stage.
  /// Throws cancelled when a root has closed the stage before it published that.
  bool wait_published(std::uint64_t iteration, std::chrono::milliseconds limit);
  const StageEntry& entry(std::uint64_t window, std::uint64_t entry) const;
  /// The same where `sample` has to be. Throws communication when another one is.
  const StageEntry& entry_of(std::uint64_t window, std::uint64_t entry, std::uint64_t sample) const;
  std::span<const std::byte> value(const StageEntry& entry) const;
  std::span<const std::byte> key(const StageEntry& entry) const;
  /// The last time in which a root waited for a free buffer, over all roots.
  Interval last_blocked() const;
  void release(int rank, std::uint64_t iterations);

  /// The rank takes no further part and holds nothing up.
  void release_all(int rank);

  /// `root` publishes nothing more; ranks that wait for it get an error.
  void close_root(int root);
  /// Ends the waits of all processes early, so that the callers look at what else has changed.
  void wake();

 private:
  struct Control;
  struct alignas(64) RootState;
  struct alignas(64) RankState;
  /// This root's part of a buffer, in bytes from the start of the data.
  struct Area {
    std::uint64_t cursor = 0;    ///< the next free byte
    std::uint64_t reserved = 0;  ///< end of what is known to be backed by memory
  };

  bool abandoned(std::uint64_t iteration) const;
  Area& area(std::uint64_t window) { return areas_[window % areas_.size()]; }
  const Area& area(std::uint64_t window) const { return areas_[window % areas_.size()]; }
  std::span<RootState> roots() const;
  std::span<RankState> ranks() const;
  StageEntry* entries(std::uint64_t window) const;
  std::uint64_t offset_of(std::span<const std::byte> bytes) const;
  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t bytes) const;
  void lay_out();
  /// Offset of `bytes` of memory in `root`'s area, backed by memory.
  std::uint64_t advance(int root, std::uint64_t window, std::uint64_t bytes,
                        std::uint64_t alignment);
  [[noreturn]] void fail_for_table() const;
  [[noreturn]] void fail_for_area(std::uint64_t needed) const;

  StageShape shape_;
  std::uint64_t area_bytes_ = 0;  ///< of one root in one buffer
  std::size_t ranks_offset_ = 0;
  std::size_t entries_offset_ = 0;
  std::size_t data_offset_ = 0;
  std::size_t total_bytes_ = 0;
  std::unique_ptr<SharedMemory> memory_;
  std::byte* base_ = nullptr;
  Control* control_ = nullptr;
  std::vector<Area> areas_;            ///< one a buffer
  std::span<const std::byte> beyond_;  ///< what entries with offsets past the data mean
  std::shared_ptr<const void> beyond_owner_;
};

}  // namespace forebay
