// What stands in for io_uring where Forebay is built without liburing.
#ifndef FOREBAY_URING

#include <cerrno>

#include "forebay/error.hpp"
#include "storage/uring_bulk_reader.hpp"

namespace forebay {

int probe_uring() { return ENOSYS; }

std::unique_ptr<BulkReader> make_uring_reader(std::shared_ptr<const File> file, const BulkOptions&,
                                              const UringProbe&) {
  throw Error(ErrorKind::unsupported, "Forebay was built without liburing",
              "use '--engine pread', or build it again with liburing installed",
              Where{.file = file->path()});
}

}  // namespace forebay

#endif
