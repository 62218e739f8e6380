#include "storage/mmap_bulk_reader.hpp"

#include <utility>

#include "core/copy_values.hpp"
#include "forebay/error.hpp"
#include "storage/file_error.hpp"
#include "storage/joined_file.hpp"
#include "storage/request_splitter.hpp"

namespace forebay {

MmapBulkReader::MmapBulkReader(std::shared_ptr<const File> file) : file_(std::move(file)) {
  if (file_->is_mapped()) return;
  throw Error(ErrorKind::unsupported, "this file was opened without a mapping",
              "open it with '--engine mmap', or read it by '--engine pread'",
              Where{.file = file_->path()});
}

void MmapBulkReader::start(std::span<const ReadRequest> requests) {
  require_possible(requests, *file_);
  requests_ = requests;
}

void MmapBulkReader::finish(const Done& done) {
  const auto requests = std::exchange(requests_, {});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    copy(requests[i]);
    done(i);
  }
}

void MmapBulkReader::copy(const ReadRequest& request) {
  const auto [file, offset] = resolve(file_, request.offset);
  const auto mapped = file->map();
  const std::uint64_t end = offset + request.into.size();
  if (end > mapped.size()) {
    file->read(offset, request.into);
  } else {
    copy_values(mapped.subspan(offset, request.into.size()), request.into);
    file->check();
    // A cut inside a page does not fault: the rest of that page reads as zeros.
    const std::uint64_t size = file->size();
    if (end > size) throw end_of_file_error(file->path(), offset, request.into.size(), size);
  }
  ++counters_.requests;
  counters_.bytes += request.into.size();
}

}  // namespace forebay
