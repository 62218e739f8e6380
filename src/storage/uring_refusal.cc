#include <fmt/format.h>

#include <cerrno>

#include "storage/file_error.hpp"
#include "storage/uring_bulk_reader.hpp"

namespace forebay {

std::string uring_refusal(int error) {
  const char* why = "the kernel refused a ring";
  if (error == ENOSYS) why = "kernel older than 5.6, or built without it";
  if (error == EPERM) why = "forbidden by kernel.io_uring_disabled or by a container";
  if (error == ENOMEM) why = "locked memory is used up: raise 'ulimit -l'";
  return fmt::format("io_uring is not available ({}: {})", errno_text(error), why);
}

}  // namespace forebay
