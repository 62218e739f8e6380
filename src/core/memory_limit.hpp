// How much memory this process may use: the machine's, or what its control groups leave of it.
//
// A control group can be limited at every level of its path, so all levels up to the mount point
// count and the smallest rules. Version 1 and version 2 hierarchies are both looked at. A group's
// usage includes page cache that the kernel drops on demand (inactive_file): it counts as
// available.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace forebay {

struct MemoryLimit {
  std::uint64_t limit_bytes = 0;      ///< the most that this process may ever use
  std::uint64_t available_bytes = 0;  ///< what is left of it now
  std::string source;                 ///< what sets the limit, for messages
};

/// Never throws; what cannot be read is taken as unlimited. `root` is where /proc and the control
/// groups are found (tests give a folder). Local, thread-safe; reads a few small files.
MemoryLimit memory_limit(const std::filesystem::path& root = "/");

}  // namespace forebay
