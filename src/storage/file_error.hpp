// Errors of the operating system in the words of forebay::Error. Internal to storage/.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "forebay/error.hpp"
#include "forebay/storage.hpp"

namespace forebay {

/// What the system says about an errno value, e.g. "Permission denied".
std::string errno_text(int error);

/// The error for a file that could not be opened.
Error open_error(const std::string& path, int error);

/// The error for a read that the system refused at `offset`.
Error read_error(const std::string& path, std::uint64_t offset, int error);

/// The error for a read of `wanted` bytes at `offset` that met the end of the file at `end`.
Error end_of_file_error(const std::string& path, std::uint64_t offset, std::uint64_t wanted,
                        std::uint64_t end);

/// The error for an access inside a mapping that the system could not serve.
Error fault_error(const std::string& path, std::uint64_t offset);

/// What tells that `file` was written to between two looks at it, in words; empty: nothing does, or
/// only its names and rights are others.
std::string sign_of_writing(const File& file, const FileFingerprint& was,
                            const FileFingerprint& is);
/// The error for a file of a data set in use that was written to, as `sign` tells.
Error rewritten_error(const std::string& path, const std::string& sign);

// The errors of a read that was given up.

/// How long requests in flight are waited for once a read was stopped.
inline constexpr std::chrono::milliseconds kStopGrace{1000};
/// And once it has waited in vain: what can be cancelled then is cancelled at once, and the rest is
/// as silent as before.
inline constexpr std::chrono::milliseconds kCancelGrace{200};

Error no_answer_error(const std::string& path, std::optional<std::uint64_t> offset,
                      std::chrono::milliseconds waited);
Error stopped_error(const std::string& path);
Error abandoned_error(const std::string& path);

/// The name of the file system that holds the open file, e.g. "ext4", "nfs", "fuse".
std::string file_system_name(int fd);
/// Of what `path`, a file or folder, lies on; it is not opened to be read.
std::string file_system_of(const std::string& path);
/// Whether such a file system is one machine's own.
bool is_local_file_system(const std::string& name);

}  // namespace forebay
