#include "comm/thread_file.hpp"

#include <algorithm>
#include <exception>

namespace forebay {

// As with MPI, an error keeps nobody from what the others wait for.
void ThreadFile::read_all(std::span<const FilePiece> pieces) {
  std::exception_ptr failed;
  try {
    for (const FilePiece& piece : pieces) read(piece.offset, piece.into);
  } catch (...) {
    failed = std::current_exception();
  }
  comm_->barrier();
  if (failed) std::rethrow_exception(failed);
}

std::uint64_t ThreadFile::read(std::uint64_t offset, std::span<std::byte> into) {
  const std::uint64_t size = file_->size();
  const std::uint64_t count = std::min<std::uint64_t>(into.size(), size - std::min(offset, size));
  if (count > 0) file_->read(offset, into.first(count));
  return count;
}

}  // namespace forebay
