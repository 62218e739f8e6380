// Reading record by record from a source that walks the data set: strategies lmdb and lmm.
#pragma once

#include <memory>

#include "read/piece_reader.hpp"
#include "read/reading_list.hpp"
#include "read/stage.hpp"
#include "read/turns.hpp"

namespace forebay {

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

}  // namespace forebay
