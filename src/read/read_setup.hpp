// From strategy names and single knobs to what is actually done: who reads, how records are
// located, with which engine, in which turns, with how much memory.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "forebay/options.hpp"
#include "format/lmdb/database.hpp"
#include "format/record_source.hpp"
#include "storage/bulk_reader.hpp"

namespace forebay {

struct ReadSetup {
  bool baseline = false;  ///< through liblmdb
  bool alone = false;     ///< every rank reads for itself, with its own stage
  int roots = 1;          ///< reading ranks among those that share a stage
  Locate locate = Locate::seek;
  ReadEngine engine = ReadEngine::mmap;  ///< automatic: chosen by file system at open
  bool may_replace_engine = false;       ///< where the system refuses it
  bool coalesce_by_memory = false;       ///< C is chosen at open
  bool collective = false;               ///< engine mpiio, all roots in one call
  int stagger = kNoStagger;              ///< roots at once, or kMeasureStagger
  std::uint64_t stage_bytes = 0;
  std::string why;  ///< of an engine that was chosen by file system

  /// Whether records are located as extents and read in bulk.
  bool reads_extents() const { return locate != Locate::seek && locate != Locate::handoff; }
};

/// Pure but for the memory limit of the machine. `node_ranks`: ranks on this node.
/// Throws usage when knobs do not go together.
ReadSetup choose_setup(const LoaderOptions& options, int node_ranks);

/// A data set as one root has opened it.
struct OpenedData {
  std::unique_ptr<RecordSource> source;
  lmdb::Database* database = nullptr;  ///< inside source; null for the baseline
  std::unique_ptr<BulkReader> bulk;    ///< when extents are read
};

/// Opens the data set with what serves `setup`. Where the system refuses the engine and another may
/// replace it, `setup` changes, with a warning in the log.
/// A stop of `stop` ends reads that wait for an answer.
OpenedData open_for(ReadSetup& setup, const LoaderOptions& options, const std::string& path,
                    std::stop_token stop);

}  // namespace forebay
