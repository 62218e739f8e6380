// Pipes, which somebody at the other end fills or empties: that one is waited for, but not for
// ever. (A file system that does not answer is noticed by storage/answers.hpp, which leaves pipes
// alone.)
//
//   reader:  nobody writes   -> waits, then gives up; whatever comes begins the wait anew
//   writer:  nobody reads    -> waits, then gives up
//            a slow reader   -> has its time: the writer of it says how long it looks on
#pragma once

#include <chrono>
#include <streambuf>
#include <string>
#include <vector>

#include "core/non_copyable.hpp"
#include "forebay/error.hpp"

namespace forebay {

/// Whether descriptor `fd` is a pipe, a socket or a terminal.
bool is_pipe(int fd);

/// Waits until `fd` has bytes or its end (`events`: POLLIN), or takes some (POLLOUT; of a pipe,
/// PIPE_BUF bytes at least). False: not within `limit`, where time in which this process was
/// stopped does not count. 0 waits for ever.
bool wait_for_pipe(int fd, short events, std::chrono::milliseconds limit);

/// Opens `path` for writing, and makes or empties it. Throws io: also where it is a named pipe that
/// nobody has opened for reading for `limit` (0: for ever).
int open_output(const std::string& path, std::chrono::milliseconds limit);

/// The error of output that the system refuses.
Error output_error(const std::string& path, int error);

/// A file, pipe or device from where it begins to its end. Throws io, from whatever reads it.
class InputBytes : public std::streambuf, private NonCopyable {
 public:
  /// A pipe's writer has `limit` for the first bytes, and again for those behind (0: for ever).
  InputBytes(std::string path, std::chrono::milliseconds limit);
  ~InputBytes() override;

 protected:
  int_type underflow() override;

 private:
  std::string path_;
  std::chrono::milliseconds limit_;
  int fd_;
  bool pipe_;
  off_type offset_ = 0;  ///< behind the bytes in buffer_
  std::vector<char> buffer_;
};

}  // namespace forebay
