// A file that several ranks have open together, for MPI-IO.
//
// Made by Communicator::open_together(). On MPI it is an MPI_File; other communicators imitate it
// by plain reads, so that what stands on it can be tried with ranks as threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace forebay {

/// Fills `into` whole from `offset`.
struct FilePiece {
  std::uint64_t offset = 0;
  std::span<std::byte> into;
};

/// Destruction: all ranks at about the same time, or the file stays open until the process ends.
class CommonFile {
 public:
  virtual ~CommonFile() = default;
  CommonFile() = default;
  CommonFile(const CommonFile&) = delete;
  CommonFile& operator=(const CommonFile&) = delete;

  /// Reads the pieces of all ranks at once: any number of them, of any length, also none, none
  /// overlapping another one of its rank. Collective, and nothing ends the wait for a rank that
  /// does not come: see CommonSteps. Throws io on the rank that MPI tells of it. Whether the file
  /// was long enough MPI does not tell: compare its size afterwards.
  virtual void read_all(std::span<const FilePiece> pieces) = 0;
  /// Reads as many bytes as there are. Local; by any number of threads where concurrent(). Not
  /// once read_all() was called, which changes what MPI shows of the file.
  virtual std::uint64_t read(std::uint64_t offset, std::span<std::byte> into) = 0;
  /// By what the bytes come, in words.
  virtual std::string describe() const = 0;
};

}  // namespace forebay
