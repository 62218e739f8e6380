#include "storage/mmap_file.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "storage/file_error.hpp"

namespace forebay {
namespace {

const char* remedy_for(int error) {
  if (error != ENOMEM) return "use '--engine pread'";
  return "use '--engine pread', or raise the limits on address space and mappings ('ulimit -v', "
         "vm.max_map_count)";
}

}  // namespace

Mapping::Mapping(int fd, std::uint64_t size, const std::string& path) {
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) {
    const int error = errno;
    throw Error(ErrorKind::unsupported,
                fmt::format("mmap of {} bytes failed ({}) on file system {}", size,
                            errno_text(error), file_system_name(fd)),
                remedy_for(error), Where{.file = path});
  }
  bytes_ = {static_cast<const std::byte*>(address), size};
}

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MmapFile::MmapFile(std::string path)
    : PreadFile(std::move(path)),
      mapping_(descriptor(), size(), this->path()),
      guard_(mapping_.bytes(), this->path()) {
  read_ahead(true);
}

void MmapFile::check() const {
  if (const auto offset = guard_.fault()) throw fault_error(path(), *offset);
}

}  // namespace forebay
