// Bulk reads by File::read(), hence over any File: on disk, in memory, failing on demand.
//
// One read at a time happens in the calling thread, all of it in finish(). More, or a reader that
// must be able to give up, take helper threads (fb-io-0, fb-io-1, ...), which live as long as the
// reader and sleep between calls; `done` is always called in the calling thread.
#pragma once

#include <memory>
#include <vector>

#include "core/placement.hpp"
#include "storage/bulk_reader.hpp"
#include "storage/read_crew.hpp"

namespace forebay {

class PreadBulkReader final : public BulkReader {
 public:
  PreadBulkReader(std::shared_ptr<const File> file, const BulkOptions& options);
  ~PreadBulkReader() override;

  void start(std::span<const ReadRequest> requests) override;
  void finish(const Done& done) override;
  void cancel() noexcept override;
  BulkCounters counters() const override;
  bool abandoned() const override { return abandoned_; }
  std::string describe() const override;

 private:
  void read_here(const Done& done);
  std::vector<std::size_t> next_finished();

  std::shared_ptr<const File> file_;
  unsigned depth_;
  std::uint64_t piece_bytes_;
  std::span<const ReadRequest> started_;
  BulkCounters counters_;  // of reads in the calling thread
  bool abandoned_ = false;
  std::shared_ptr<ReadCrew> crew_;
  std::vector<HelperThread> threads_;
};

}  // namespace forebay
