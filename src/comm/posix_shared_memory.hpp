// POSIX shared memory that no kill can leave behind.
//
// The creating rank opens a file in /dev/shm that never has a name (O_TMPFILE), and the others open
// it through /proc/<pid>/fd/<n> of the creator. Where that is not possible (another process
// namespace, an old kernel), a random name serves for the moment until all have attached.
//
// The file is sparse. Touching a page that tmpfs cannot provide would be a bus error, so users
// reserve() before they write.
//
// Segments of 4 MiB and more start at a multiple of 2 MiB, and what is reserved of them is moved
// into 2 MiB pages where the system has any to give.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "forebay/communicator.hpp"

namespace forebay {

/// Collective over ranks that share memory. Throws io on every rank when a rank cannot attach.
std::unique_ptr<SharedMemory> share_posix(Communicator& comm, std::size_t bytes,
                                          const std::string& directory = "/dev/shm");

/// Bytes that shared memory can still take: what its file system has, or less where this process
/// may use less. Local.
std::uint64_t free_shared_memory(const std::string& directory = "/dev/shm");

}  // namespace forebay
