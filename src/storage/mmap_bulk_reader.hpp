// Bulk reads as copies out of File::map(), one after another.
//
// The guard of the mapping turns a page that the device cannot supply into zeros and a record of
// the fault, so each copy is checked before `done` hears of it. Bytes past the mapping (the file
// has grown since it was opened) are read explicitly.
#pragma once

#include <memory>

#include "storage/bulk_reader.hpp"

namespace forebay {

class MmapBulkReader final : public BulkReader {
 public:
  /// Throws unsupported for a file that is not mapped.
  explicit MmapBulkReader(std::shared_ptr<const File> file);

  /// Only notes what to copy: this engine does everything in the calling thread.
  void start(std::span<const ReadRequest> requests) override;
  void finish(const Done& done) override;
  void cancel() noexcept override { requests_ = {}; }
  BulkCounters counters() const override { return counters_; }
  bool abandoned() const override { return false; }
  std::string describe() const override { return "mmap, copied one after another"; }

 private:
  void copy(const ReadRequest& request);

  std::shared_ptr<const File> file_;
  std::span<const ReadRequest> requests_;
  BulkCounters counters_;
};

}  // namespace forebay
