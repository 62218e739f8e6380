// One of several joined files (joined_file.hpp) through the BulkReader of all.
#pragma once

#include <vector>

#include "storage/bulk_reader.hpp"

namespace forebay {

/// Offsets are those of the file that begins at `begin`. `all` outlives it and reads for nobody
/// else between start() and finish().
class ShiftedReader final : public BulkReader {
 public:
  ShiftedReader(BulkReader& all, std::uint64_t begin) : all_(all), begin_(begin) {}

  void start(std::span<const ReadRequest> requests) override {
    requests_.assign(requests.begin(), requests.end());
    for (ReadRequest& request : requests_) request.offset += begin_;
    all_.start(requests_);
  }
  void finish(const Done& done) override { all_.finish(done); }
  void advance() override { all_.advance(); }
  void cancel() noexcept override { all_.cancel(); }
  BulkCounters counters() const override { return all_.counters(); }
  bool abandoned() const override { return all_.abandoned(); }
  std::string describe() const override { return all_.describe(); }

 private:
  BulkReader& all_;
  std::uint64_t begin_;
  std::vector<ReadRequest> requests_;
};

}  // namespace forebay
