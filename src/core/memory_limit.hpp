// How much memory this process may use: the machine's, or what its control groups and the limits
// of its user (ulimit -v, -d) leave of it.
//
// A control group can be limited at every level of its path, so all levels up to the mount point
// count and the smallest rules. Version 1 and version 2 hierarchies are both looked at. A group's
// usage includes page cache that the kernel drops on demand (inactive_file): it counts as
// available.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
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

// 2 MiB pages, where the system has them to give: one translation instead of 512.
//
// Shared memory gets them in two ways. Advice (MADV_HUGEPAGE) works at the first touch, and only
// where the administrator allows it (/sys/kernel/mm/transparent_hugepage/shmem_enabled, or the
// mount option huge= of /dev/shm; both are `never` in most distributions), and never for pages that
// were reserved by fallocate. MADV_COLLAPSE (Linux 6.1) moves pages that exist into huge ones
// at once, whatever those settings say short of `deny`.

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Asks for huge pages behind `memory`, which starts at a page boundary, from its first touch on.
/// False where the system knows no such advice. Never an error. Thread-safe.
bool advise_huge_pages(std::span<std::byte> memory) noexcept;

/// Moves the pages of `memory` into huge ones now, as far as these lie inside of it; its content
/// stays. Takes about the time of a copy. False where that was not possible for all of them (an
/// older kernel, no free huge page): the memory is as good as before. Thread-safe.
bool collapse_into_huge_pages(std::span<std::byte> memory) noexcept;

}  // namespace forebay
