// Bulk reads through io_uring: one thread keeps many requests in flight.
//
// Files that are not on a file system (memory, failing) cannot be read this way.
#pragma once

#include <functional>
#include <memory>

#include "storage/bulk_reader.hpp"

namespace forebay {

/// Says whether io_uring works in this process: 0, or the errno of the first step that failed.
/// ENOSYS: no such system call, or too old, or Forebay was built without liburing. EPERM: forbidden
/// (kernel.io_uring_disabled, or a container's filter of system calls).
int probe_uring();
using UringProbe = std::function<int()>;

/// choose_engine() with the question "is there an io_uring?" answered by the caller: for tests.
EngineChoice choose_engine(const File& file, bool scattered, const UringProbe& probe);

/// Why io_uring is not available, for messages: "io_uring is not available (...)".
std::string uring_refusal(int error);

/// Throws unsupported where io_uring does not work (as `probe` says) or `file` has no descriptor.
std::unique_ptr<BulkReader> make_uring_reader(std::shared_ptr<const File> file,
                                              const BulkOptions& options,
                                              const UringProbe& probe = probe_uring);

}  // namespace forebay
