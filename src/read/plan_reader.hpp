// Reading in few large requests, as the plans of a data set say: every format, every strategy that
// does not walk.
//
//   plan      which bytes the samples of a part need, each once    DataSet::plan_runs
//   join      neighbours become one read                           (coalescing)
//   turn      the right to read now                                (staggering)
//   bulk      bytes land in the stage, or in memory beside it      (engine)
//   fill      entries point at the samples                         StageFiller
//
// So that the file system always has something to do, the next part is planned while this one is on
// its way, and on its way while this one is unpacked:
//
//   plan 1 | plan 2      | fill 1, plan 3 | fill 2, plan 4 | ...
//          | read 1      | read 2         | read 3         | ...
//
// What may have to wait for other roots, who may be waiting for this one, comes after the part
// before has been delivered: reading with turns, and even planning by an index that others prepare.
//
// Where what is read lies beside the stage, and does not fit there, a part is brought in slices, by
// sample, which alternate between two halves of the memory, also over the end of a part.
//
// Where samples come at random, extents that serve many of them are kept (KeptExtents), and what is
// found there is copied. Where files are mapped, parts that are in the page cache already are not
// read at all: samples are put together from there, or, where entries may point at the mapped file,
// what follows copies each value once, from there to where it is wanted.
//
// When an index turns out to be wrong about the file, it is given up for good, and the data set
// finds out in another way; nothing of what it said was delivered.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "format/sample_reader.hpp"
#include "read/kept_extents.hpp"
#include "read/piece_reader.hpp"
#include "read/stage_filler.hpp"
#include "read/turns.hpp"

namespace forebay {

struct ReaderSite;

/// How a data set gets ready for a part, where that takes other roots (locate=scatter).
using PreparePart = std::function<void(const WindowPart&)>;

struct PlanReaderParts {
  std::shared_ptr<const DataSet> data;
  std::unique_ptr<BulkReader> bulk = nullptr;  ///< of data->whole()
  /// Where `bulk` reads together with other roots: for what they do not take part in. May be empty.
  std::unique_ptr<BulkReader> own = nullptr;
  PreparePart prepare;          ///< may be empty
  std::function<void()> leave;  ///< tells other roots; may be empty
  std::uint64_t gap_bytes = 0;
  std::uint64_t keep_bytes = 0;     ///< memory for extents that serve samples of several parts
  std::uint64_t private_bytes = 0;  ///< memory for what is read and decoded beside the stage
  unsigned threads = 1;             ///< that decode, the reading thread among them
  Placement placement = {};         ///< of the others
  /// The files of `data`, to use what of them is in memory without reading; empty: all is read.
  std::vector<std::shared_ptr<const File>> mapped = {};
  /// Whether entries may point there, rather than at copies: the stage has one rank.
  bool in_place = false;
  /// Brings into memory what is not there, to be used like that as well; null: `bulk` reads it.
  std::unique_ptr<BulkReader> filler = nullptr;
};

/// All references must outlive it.
class PlanReader final : public PieceReader {
 public:
  PlanReader(PlanReaderParts parts, ReadingList& list, Stage& stage, int root, Turns& turns);
  ~PlanReader() override;

  void read(const WindowPart& part, const std::optional<WindowPart>& next) override;
  void check_unchanged() override;
  ReadTotals totals() const override;
  bool abandoned() const override;
  void leave() override;

 private:
  /// Consecutive samples of a part, and the bytes that they need.
  struct Slice {
    PlannedSamples samples;
    std::unique_ptr<const Plan> plan;
    std::vector<PlacedExtent> reads;
    std::span<std::byte> memory = {};
    std::vector<ReadRequest> requests = {};
  };
  /// A part on its way into the stage.
  struct Transfer {
    WindowPart part;
    PlannedSamples samples;
    std::vector<Slice> slices;        ///< once it is planned
    bool in_memory = false;           ///< nothing of it is read
    bool from_map = false;            ///< it is used where it is mapped
    std::vector<FileExtent> to_keep;  ///< in the plan
    bool had_turn = false;
    bool begun = false;                 ///< in the stage
    bool reading = false;               ///< its first slice
    bool brought = false;               ///< with the other roots, where they read together
    std::optional<std::uint64_t> mark;  ///< where its room in the stage begins
  };

  std::unique_ptr<Transfer> prepare(const WindowPart& part);
  void plan(Transfer& transfer);
  void cut(Transfer& transfer, PlannedSamples samples);
  Slice slice_of(Transfer& transfer, PlannedSamples samples);
  bool points_at_records() const;
  bool fits(const Slice& slice) const;
  bool is_in_memory(const Transfer& transfer) const;
  std::vector<FileExtent> leave_out_kept(Transfer& transfer, const Plan& plan);
  void deliver(Transfer& transfer, const std::optional<WindowPart>& next);
  void start_next();
  void begin(Transfer& transfer);
  void start(Transfer& transfer, Slice& slice);
  void finish(Transfer& transfer);
  void fill(const Transfer& transfer, const Slice& slice);
  BulkReader& bulk_for(const Transfer& transfer) const;
  void give_up_index(const IndexMismatch& mismatch, Transfer& transfer);
  void cancel() const;

  // These outlive parts_.bulk, which reads what they ask for until it is told otherwise.
  std::unique_ptr<Transfer> current_;
  std::unique_ptr<Transfer> next_;  ///< what the next call is for: planned, perhaps started
  std::array<PrivateMemory, 2> memory_;
  std::size_t half_ = 0;  ///< of memory_, for the next slice
  PlanReaderParts parts_;
  MappedFileBytes maps_;
  std::vector<std::span<const std::byte>> by_address_;  ///< the same, where entries may point there
  StageFiller filler_;
  KeptExtents kept_;
  ReadingList& list_;
  Stage& stage_;
  int root_;
  Turns& turns_;
  ReadTotals totals_;
  DecodeCounters before_;               ///< of the data set, by others
  std::vector<std::uint32_t> touched_;  ///< files read from since they were last checked
};

}  // namespace forebay
