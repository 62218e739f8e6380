// From strategy names and single knobs to what is actually done: who reads, how records are
// located, with which engine, in which turns, with how much memory.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "forebay/options.hpp"
#include "forebay/placement.hpp"
#include "storage/bulk_reader.hpp"

namespace forebay {

/// When a rank reads for itself, in place of roots that read for all ranks of a node.
enum class ReadAlone : std::uint8_t {
  where_said,    ///< --roots each
  unless_roots,  ///< unless --roots says how many
  always,        ///< ranks take samples out of each other's memory: what each reads is settled
};

struct ReadSetup {
  bool baseline = false;                 ///< through liblmdb
  bool alone = false;                    ///< every rank reads for itself, with its own stage
  int roots = 1;                         ///< reading ranks among those that share a stage
  Locate locate = Locate::seek;          ///< automatic: nothing has to be located
  ReadEngine engine = ReadEngine::mmap;  ///< automatic: chosen by file system at open
  bool may_replace_engine = false;       ///< where the system refuses it
  bool scattered = false;                ///< samples are read at random places
  bool apart = false;                    ///< what lies behind a read is mostly read by others
  std::uint64_t gap_bytes = 0;           ///< extents that lie closer are read as one
  std::uint64_t keep_bytes = 0;          ///< memory for extents that serve samples of several parts
  bool small = false;                    ///< samples of less than 64 KiB
  bool coalesces = false;    ///< C by the formula; windows are read together where nobody walks
  bool collective = false;   ///< engine mpiio, all roots in one call
  int stagger = kNoStagger;  ///< roots at once, or kMeasureStagger
  std::uint64_t stage_bytes = 0;
  CorePlan cores;          ///< of this rank's threads
  std::string why;         ///< of an engine that was chosen by file system
  std::string how_walked;  ///< "strategy lmm": what makes it walk, for messages

  /// Whether many reads have to be in flight to keep a device busy. Where samples are large, each
  /// is enough for that, and few at once do.
  bool needs_depth() const { return scattered && small; }

  /// Large samples at random places.
  bool large_apart() const { return scattered && !small; }

  /// Every root for itself, where they do not read in common steps.
  void locate_alone() {
    if (locate == Locate::handoff) locate = Locate::seek;
    if (locate == Locate::scatter) locate = Locate::scan;
  }

  /// Whether samples are read in bulk, as plans say,
  bool reads_extents() const { return locate != Locate::seek && locate != Locate::handoff; }
  /// and whether somebody walks to find records.
  bool walks() const { return !reads_extents() || locate == Locate::scatter; }
};

/// Whether a number of roots that read at once was asked for, or looking for one.
inline bool asks_for_turns(const ReadOptions& options) {
  return options.stagger != kStaggerByStrategy && options.stagger != kNoStagger;
}

/// Pure but for the memory limit of the machine. `node_ranks`: ranks on this node.
/// `located`: where samples are has to be located (Format::located). Throws usage when knobs do not
/// go together.
ReadSetup choose_setup(const LoaderOptions& options, int node_ranks, bool located = true,
                       ReadAlone alone = ReadAlone::where_said);

/// Before what follows, of `samples` that take `bytes` in their files.
void consider_sizes(ReadSetup& setup, std::uint64_t samples, std::uint64_t bytes);

/// What `file` is read with; where the engine is chosen by file system, `setup` tells afterwards.
Engine storage_engine(ReadSetup& setup, const File& file);

/// A stop of `stop` ends reads that wait for an answer.
BulkOptions bulk_options(const ReadOptions& options, const ReadSetup& setup, std::stop_token stop);

}  // namespace forebay
