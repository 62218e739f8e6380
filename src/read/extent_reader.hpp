// Reading in few large requests, straight into the stage: strategies lmm-dio and up.
//
//   index     which extents hold the part's samples       (locate)
//   plan      sorted and joined into few reads            (coalescing)
//   turn      the right to read now                       (staggering)
//   bulk      pages of the file land in the stage         (engine)
//   unpack    entries point at the records in these pages, nothing is copied
//
// So that the file system always has something to do, the next part is located while this one is
// on its way, and on its way while this one is unpacked:
//
//   locate 1 | locate 2    | unpack 1, locate 3 | unpack 2, locate 4 | ...
//            | read 1      | read 2             | read 3             | ...
//
// What may have to wait for other roots, who may be waiting for this one, comes after the part
// before has been delivered: reading with turns, and even locating with an index that others
// prepare.
//
// Where samples come at random, extents that serve many of them are kept (KeptExtents), and what is
// found there is copied.
//
// Where entries may point at the mapped file, parts that are in the page cache already are not read
// at all, and others are brought there: what follows then copies each value once, from there to
// where it is wanted.
//
// When the index turns out to be wrong about the file, it is given up for good, and another way to
// locate takes its place; nothing of what it said was delivered.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "read/kept_extents.hpp"
#include "read/piece_reader.hpp"
#include "read/read_plan.hpp"
#include "read/reading_list.hpp"
#include "read/stage.hpp"
#include "read/turns.hpp"
#include "storage/bulk_reader.hpp"

namespace forebay {

struct ReaderSite;

/// How an index gets ready for a part, where that takes other roots (locate=scatter).
using PrepareIndex = std::function<void(const WindowPart&)>;

struct ExtentReaderParts {
  RecordSource* source = nullptr;  ///< the snapshot: who is asked whether it is unchanged
  std::unique_ptr<RecordIndex> index;
  PrepareIndex prepare;                                   ///< may be empty
  std::function<void()> leave;                            ///< tells other roots; may be empty
  std::function<std::unique_ptr<RecordIndex>()> replace;  ///< another index; may be empty
  std::unique_ptr<BulkReader> bulk = nullptr;
  /// Where `bulk` reads together with other roots: for what they do not take part in. May be empty.
  std::unique_ptr<BulkReader> own = nullptr;
  std::uint64_t gap_bytes = 0;
  std::uint64_t keep_bytes = 0;  ///< memory for extents that serve samples of several parts
  /// The file, to use in place what of it is in memory; null: all is read. The stage has one rank.
  std::shared_ptr<const File> mapped = nullptr;
  /// Brings into memory what is not there, to be used in place as well; null: `bulk` reads it.
  std::unique_ptr<BulkReader> filler = nullptr;
};

/// All references must outlive it.
class ExtentReader final : public PieceReader {
 public:
  ExtentReader(ExtentReaderParts parts, ReadingList& list, Stage& stage, int root, Turns& turns);

  void read(const WindowPart& part, const std::optional<WindowPart>& next) override;
  void check_unchanged() override;
  ReadTotals totals() const override;
  bool abandoned() const override {
    return parts_.bulk->abandoned() || (parts_.own && parts_.own->abandoned());
  }
  void leave() override;

 private:
  /// A part on its way into the stage.
  struct Transfer {
    WindowPart part;
    std::vector<SampleRun> runs;
    bool located = false;
    bool in_memory = false;  ///< nothing of it is read
    bool in_place = false;   ///< entries point at the mapped file
    ReadPlan plan;
    std::vector<Extent> to_keep;  ///< in the plan
    bool had_turn = false;
    bool reading = false;
    bool brought = false;               ///< with the other roots, where they read together
    std::optional<std::uint64_t> mark;  ///< where its room in the stage begins
    std::span<std::byte> memory;
    std::vector<ReadRequest> requests;
  };

  std::unique_ptr<Transfer> prepare(const WindowPart& part);
  void deliver(Transfer& transfer, const std::optional<WindowPart>& next);
  void locate(Transfer& transfer);
  bool is_in_memory(const Transfer& transfer);
  void bring(Transfer& transfer, const std::optional<WindowPart>& next);
  void start(Transfer& transfer);
  std::span<std::byte> room_for(const Transfer& transfer, const PlannedRead& read) const;
  BulkReader& bulk_for(const Transfer& transfer) const;
  void leave_out_kept(Transfer& transfer);
  void unpack(const Transfer& transfer);
  void after_run();
  void cancel() const;
  void give_up_index(const IndexMismatch& mismatch);

  // These outlive parts_.bulk, which reads what they ask for until it is told otherwise.
  std::unique_ptr<Transfer> current_;
  std::unique_ptr<Transfer> next_;  ///< what the next call is for: located, perhaps started
  ExtentReaderParts parts_;
  KeptExtents kept_;
  std::unique_ptr<RecordIndex> given_up_;  ///< other roots may go on with it: prepare() needs it
  ReadingList& list_;
  Stage& stage_;
  int root_;
  Turns& turns_;
  ReadTotals totals_;
  std::size_t runs_ = 0;         ///< located or unpacked so far
  std::vector<Extent> extents_;  ///< kept for its memory
};

/// A reader for `site`, which reads with `own` and, what all roots read at once, with `together`,
/// which may be null. Sets what `parts` say of these and of the site.
std::unique_ptr<ExtentReader> make_extent_reader(const ReaderSite& site, ExtentReaderParts parts,
                                                 std::unique_ptr<BulkReader> own,
                                                 std::unique_ptr<BulkReader> together);

/// Hands record `sample` to `sink`: through `index` if there is one, which reads nothing but that
/// record's pages, else by walking to it.
void read_sample(RecordSource& source, BulkReader* bulk, RecordIndex* index, std::uint64_t sample,
                 const RecordSink& sink);

}  // namespace forebay
