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

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/number_text.hpp"
#include "forebay/error.hpp"
#include "pfs/model.hpp"

namespace forebay::pfs {

/// Thread-safe; local.
class Faults {
 public:
  explicit Faults(std::string backing) : backing_(std::move(backing)) {}

  /// One line as described above. Throws usage for others, not_found for an unknown file.
  void command(std::string_view line) {
    const auto words = words_of(line);
    const std::string_view verb = words.empty() ? "" : std::string_view(words[0]);
    if ((verb == "fail" && words.size() == 3) || (verb == "stall" && words.size() == 4)) {
      const Fault fault = parse(words);
      const std::lock_guard lock(mutex_);
      faults_.push_back(fault);
      return;
    }
    const bool is_short = verb == "short" && words.size() == 2;
    const std::lock_guard lock(mutex_);
    if (is_short && words[1] == "on") {
      short_reads_ = true;
    } else if (is_short && words[1] == "off") {
      short_reads_ = false;
    } else if (verb == "clear" && words.size() == 1) {
      faults_.clear();
      short_reads_ = false;
    } else {
      throw Error(
          ErrorKind::usage, fmt::format("'{}' is no fault", line),
          "say 'fail FILE OFFSET', 'stall FILE OFFSET DURATION', 'short on|off' or 'clear'");
    }
  }

  bool fails(std::uint64_t file, std::uint64_t offset, std::uint64_t length) const {
    const std::lock_guard lock(mutex_);
    return find(file, offset, length, false) != nullptr;
  }

  std::optional<Stall> stall(std::uint64_t file, std::uint64_t offset, std::uint64_t length) const {
    const std::lock_guard lock(mutex_);
    const Fault* fault = find(file, offset, length, true);
    if (fault == nullptr) return std::nullopt;
    return Stall{fault->offset, *fault->stall};
  }

  /// Bytes to return of `length` asked for.
  std::uint64_t allowed(std::uint64_t length, bool cached) const {
    const std::lock_guard lock(mutex_);
    return short_reads_ && !cached && length > 1 ? length / 2 : length;
  }

 private:
  static std::vector<std::string> words_of(std::string_view line) {
    std::istringstream in{std::string(line)};
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    return words;
  }

  struct Fault {
    std::uint64_t file;  ///< number of the inode
    std::uint64_t offset;
    std::optional<std::chrono::nanoseconds> stall;  ///< none: EIO
  };

  const Fault* find(std::uint64_t file, std::uint64_t offset, std::uint64_t length,
                    bool stalls) const {
    const auto found = std::ranges::find_if(faults_, [&](const Fault& fault) {
      return fault.stall.has_value() == stalls && fault.file == file && fault.offset >= offset &&
             fault.offset - offset < length;
    });
    return found == faults_.end() ? nullptr : &*found;
  }

  Fault parse(const std::vector<std::string>& words) const {
    const std::string path = backing_ + "/" + words[1];
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
      throw Error(ErrorKind::not_found, "a fault needs an existing file",
                  "name it relative to the backing directory", {.file = path});
    }
    Fault fault{status.st_ino, parse_bytes(words[2], "fault offset"), {}};
    if (words.size() == 4) fault.stall = parse_duration(words[3], "stall");
    return fault;
  }

  std::string backing_;
  mutable std::mutex mutex_;
  std::vector<Fault> faults_;
  bool short_reads_ = false;
};

}  // namespace forebay::pfs
