// What was read of a window becomes entries of the stage: samples decoded and put together where
// they have to be, and pointed at.
//
//   in the file      entries point at what lies in the stage, or where the file is mapped
//   in scratch       what decoding writes to the stage is the value
//   in parts         the parts of each sample are copied to one place, by several threads; or,
//                    where they are mapped and may stay there, the value tells where they are
#pragma once

#include <mutex>
#include <vector>

#include "core/private_memory.hpp"
#include "core/worker_pool.hpp"
#include "format/data_set.hpp"
#include "read/reading_list.hpp"
#include "read/stage.hpp"
#include "storage/bulk_reader.hpp"

namespace forebay {

/// Samples of a window in the order of a plan: runs of samples, each into consecutive entries.
class PlannedSamples {
 public:
  PlannedSamples() = default;
  explicit PlannedSamples(std::vector<SampleRun> runs);

  /// Positions `first` to `first` + `count` - 1.
  PlannedSamples part(std::size_t first, std::size_t count) const;
  std::size_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  std::span<const SampleRun> runs() const { return runs_; }
  std::vector<IdRun> ids() const;
  struct At {
    std::uint64_t sample = 0;
    std::uint64_t entry = 0;
  };
  /// Fast for positions that ascend.
  At at(std::size_t position) const;

 private:
  std::vector<SampleRun> runs_;
  std::vector<std::size_t> ends_;  ///< of each run, in positions
  mutable std::size_t last_ = 0;
};

/// Some samples of one window, and their bytes.
struct FilledPart {
  const PlannedSamples& samples;
  const Plan& plan;
  const FileBytes& bytes;
  /// Entries may point into this; what lies elsewhere is copied.
  std::span<const std::byte> memory;
  /// Values in parts may tell of parts that lie in these; by address.
  std::span<const std::span<const std::byte>> told_of = {};
  std::uint64_t window = 0;
};

/// One thread; all references must outlive it.
class StageFiller {
 public:
  /// `threads` decode, the caller among them.
  StageFiller(const DataSet& data, Stage& stage, int root, unsigned threads,
              const Placement& placement);

  /// Whether what is read belongs into the stage.
  bool reads_into_stage() const { return into_stage_; }
  /// Throws what the plan throws.
  void fill(const FilledPart& part, BulkReader& bulk);

 private:
  void decode(const FilledPart& part, std::span<std::byte> scratch);
  void point_at(const FilledPart& part, std::span<const std::byte> scratch, BulkReader& bulk);
  void put_together(const FilledPart& part, std::span<const std::byte> scratch);

  const DataSetFacts& facts_;
  Stage& stage_;
  int root_;
  const bool into_stage_;
  WorkerPool pool_;
  PrivateMemory scratch_;
  std::mutex spaces_mutex_;
  std::vector<DecodeSpace> spaces_;  ///< those that no thread uses
};

}  // namespace forebay
