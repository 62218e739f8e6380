// What a run has delivered so far, and what it cost.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/process_usage.hpp"
#include "loader/delivery.hpp"
#include "read/piece_reader.hpp"

namespace forebay {

/// Which samples were left out because they do not decode: each once, however many epochs meet it.
/// One thread at a time.
class SkippedList {
 public:
  static constexpr std::size_t kMostListed = 1000;
  static constexpr std::size_t kMostLogged = 20;

  /// Lists and logs those that are new, as long as the list is not full. `file` is for the log.
  void add(const std::string& file, std::span<const SkippedSample> skipped);
  std::span<const SkippedSample> all() const { return listed_; }

 private:
  std::vector<SkippedSample> listed_;
  std::set<std::uint64_t> ids_;  ///< of those
};

/// When opening began, and what the process had used until then.
struct RunStart {
  std::int64_t ns = now_ns();
  ProcessUsage usage = process_usage();
};

/// One thread at a time.
class RunFigures {
 public:
  /// `file` is for the log; `epochs_done`: before this run.
  RunFigures(const RunStart& start, std::string file, std::uint64_t epochs_done)
      : start_(start), file_(std::move(file)), epochs_done_(epochs_done) {}

  void end_opening();
  void count(const Delivery& delivery);
  /// Values that the consumer decodes itself, and batches that it waits for to be decoded.
  double& decode_seconds() { return figures_.decode_seconds; }
  void add_decode_wait(std::int64_t ns);
  std::uint64_t epochs_done() const { return epochs_done_; }
  std::span<const SkippedSample> skipped() const { return skipped_.all(); }
  /// For the reading thread of a root.
  const std::shared_ptr<ReadFigures>& reading() const { return reading_; }
  double decode_wait_seconds() const { return figures_.exposed_decode_seconds; }
  LoaderStatistics all() const;

 private:
  RunStart start_;
  std::string file_;
  std::uint64_t epochs_done_;
  LoaderStatistics figures_;  ///< the consumer's part
  SkippedList skipped_;
  std::shared_ptr<ReadFigures> reading_ = std::make_shared<ReadFigures>();
};

}  // namespace forebay
