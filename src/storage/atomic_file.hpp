// A file that appears under its name whole, or not at all: written without a name, flushed to the
// device, then named. A process that is killed meanwhile leaves nothing behind. Where the file
// system has no files without names (NFS), it is written beside it under a temporary name,
// "*.part". One thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/non_copyable.hpp"

namespace forebay {

class AtomicFile : private NonCopyable {
 public:
  /// Throws io when the temporary file cannot be made.
  explicit AtomicFile(std::string path);
  /// Removes the temporary file unless it was committed.
  ~AtomicFile();

  /// Throws io.
  void write(std::span<const std::byte> bytes);
  /// Makes the file appear, in place of an older one of its name. Throws io.
  void commit();

 private:
  void make();

  std::string path_;
  std::string name_;       ///< in its directory, which is opened once: it may be renamed meanwhile
  std::string temporary_;  ///< likewise
  bool named_ = false;     ///< `temporary_` exists
  int directory_ = -1;
  int fd_ = -1;
};

}  // namespace forebay
