// The strategies of the papers that find records by walking over a tree: lmdb (through liblmdb),
// lmm and lmm-dm; and lmm-dio, in which one root walks for all and what it finds is read by plans.
// Nothing else is read through these.
#pragma once

#include <memory>

#include "format/record_source.hpp"
#include "read/data_access.hpp"
#include "read/plan_reader.hpp"

namespace forebay {

/// Reads record by record from a source that walks the data set: strategies lmdb and lmm.
/// All references must outlive it.
class WalkReader final : public PieceReader {
 public:
  WalkReader(RecordSource& source, ReadingList& list, Stage& stage, int root, Turns& turns)
      : source_(source), list_(list), stage_(stage), root_(root), turns_(turns) {}

  void read(const WindowPart& part, const std::optional<WindowPart>& next) override;
  void check_unchanged() override { source_.check_unchanged(); }
  ReadTotals totals() const override;

 private:
  void read_run(std::uint64_t window, const SampleRun& run);

  RecordSource& source_;
  ReadingList& list_;
  Stage& stage_;
  int root_;
  Turns& turns_;
  ReadTotals totals_;
};

/// Whether the samples of `data` are the records of one tree.
bool may_walk(const DataSet& data);
/// A walker over the records of `data`. Throws usage where these are not those of one tree.
std::unique_ptr<RecordSource> open_walk(DataSet& data, const ReadSetup& setup);

/// Reads what `source`, opened for `setup`, walks to. The source outlives it.
std::unique_ptr<PieceReader> make_walking_reader(RecordSource& source, const ReadSetup& setup,
                                                 const ReaderSite& site,
                                                 std::chrono::milliseconds patience);

/// Lets plans of `data` go by what one root finds for all; completes `parts` with what that takes.
void read_scattered(DataSet& data, const ReaderSite& site, std::chrono::milliseconds patience,
                    PlanReaderParts& parts);

}  // namespace forebay
