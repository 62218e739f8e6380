// Faults that reads run into, switched on and off while the file system is in use.
//
//   fail FILE OFFSET            reads that cover byte OFFSET of FILE end with EIO
//   stall FILE OFFSET DURATION  their server hangs for DURATION, with all that queue behind them
//   short on|off                reads of a mount with direct_io return half of what was asked, but
//   at
//                               least one byte
//   clear                       no faults any more
//
// Short answers need direct_io because the page cache takes one for the end of the file, and after
// a short answer to O_DIRECT the kernel itself reads the rest. FILE is relative to the backing
// directory and is looked up when the fault is armed: a file that takes its name later does not
// have the fault.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pfs/model.hpp"

namespace forebay::pfs {

/// Thread-safe; local.
class Faults {
 public:
  explicit Faults(std::string backing) : backing_(std::move(backing)) {}

  /// One line as described above. Throws usage for others, not_found for an unknown file.
  void command(std::string_view line);

  bool fails(std::uint64_t file, std::uint64_t offset, std::uint64_t length) const;
  std::optional<Stall> stall(std::uint64_t file, std::uint64_t offset, std::uint64_t length) const;
  /// Bytes to return of `length` asked for.
  std::uint64_t allowed(std::uint64_t length, bool cached) const;

 private:
  struct Fault {
    std::uint64_t file;  ///< number of the inode
    std::uint64_t offset;
    std::optional<std::chrono::nanoseconds> stall;  ///< none: EIO
  };

  const Fault* find(std::uint64_t file, std::uint64_t offset, std::uint64_t length,
                    bool stalls) const;
  Fault parse(const std::vector<std::string>& words) const;

  std::string backing_;
  mutable std::mutex mutex_;
  std::vector<Fault> faults_;
  bool short_reads_ = false;
};

}  // namespace forebay::pfs
