// The read loop that every engine shares: pread until the span is full.
//
// The operating system may return fewer bytes than asked for (a signal, a network file system, the
// 2 GiB limit of one call) and may interrupt the call. Both are normal and handled here; only the
// end of the file and real errors reach the caller.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace forebay {

/// How a read ended: `filled` bytes arrived in `requests` calls; `error` is errno or 0. A result
/// with error 0 and filled < out.size() met the end of the file.
struct ReadResult {
  std::uint64_t filled = 0;
  std::uint64_t requests = 0;
  int error = 0;
};

/// Calls `pread_call(bytes, count, offset)`, which behaves as pread(2), until `out` is full.
template <typename PreadCall>
ReadResult read_fully(std::uint64_t offset, std::span<std::byte> out, PreadCall&& pread_call) {
  ReadResult result;
  while (result.filled < out.size()) {
    const auto rest = out.subspan(result.filled);
    const auto got = pread_call(rest.data(), rest.size(), offset + result.filled);
    if (got < 0 && errno == EINTR) continue;
    ++result.requests;
    if (got < 0) result.error = errno;
    if (got <= 0) break;
    result.filled += static_cast<std::uint64_t>(got);
  }
  return result;
}

}  // namespace forebay
