// A data set as a loader reads it: what opening, agreeing and reading need.
//
//   open_to_read   OpenedData    the data set, and what reads it: here, or for all roots at once
//   DataAccess     facts, first values, outlines; where samples are, if opening has not found out
//   make_reader    StageReader   what fills the stage
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/dataset.hpp"
#include "format/record_source.hpp"
#include "format/registry.hpp"
#include "read/piece_reader.hpp"
#include "read/read_outline.hpp"
#include "read/read_setup.hpp"
#include "read/reading_list.hpp"
#include "read/root_map.hpp"
#include "read/stage.hpp"
#include "read/turns.hpp"
#include "storage/bulk_reader.hpp"
#include "storage/mmap_file.hpp"

namespace forebay {

/// What a root knows of its data set once it is open.
struct DataFacts {
  std::uint64_t entries = 0;
  std::uint64_t file_bytes = 0;    ///< DataSet::stored_bytes()
  std::uint64_t stored_bytes = 0;  ///< what a window of all samples takes in the stage, or more
  bool local = false;              ///< on a device of this node
  std::uint32_t servers = 0;       ///< of rank 0's first file; 0: not known
  /// Samples are put together from what was read, in memory beside the stage.
  bool assembled = false;
  /// First sample of each file that has any, and the number of samples; empty for one file.
  std::vector<std::uint64_t> files;
  std::vector<std::string> parts;    ///< of packed samples, by name (forebay/packed_parts.hpp)
  std::vector<std::string> classes;  ///< names of what labels number; none: not known
  std::string fingerprint;
};

/// What a reader works for. References outlive it.
struct ReaderSite {
  ReadingList& list;
  Stage& stage;
  int root = 0;  ///< number among the roots of the stage
  Turns& turns;
  std::uint64_t gap_bytes = 0;      ///< see LoaderOptions
  std::uint64_t keep_bytes = 0;     ///< memory for extents that serve samples of several parts
  std::uint64_t private_bytes = 0;  ///< memory beside the stage, where samples are assembled
  int node_ranks = 1;               ///< that share the cores of this node
  CorePlan cores;                   ///< of this rank's threads
  GiveUp give_up;
  /// Tells those with whom this root reads together that it reads no more; may be empty.
  std::function<void()> leave;
  /// Entries may point at the mapped file: one process uses the stage, and asks check_in_place()
  /// when it has used what they point at.
  bool in_place = false;
  std::shared_ptr<Communicator> roots;  ///< all roots
  /// Of the strided order; null in others, in which every rank reads by itself.
  std::shared_ptr<const RootMap> map;
  const WindowPlan* plan = nullptr;   ///< of the stage, inside `map`
  std::uint64_t first_iteration = 0;  ///< and the last one, for readers that hand on
  std::uint64_t end_iteration = 0;
};

/// What `options` say of how files are opened, without what a loader adds.
FormatOptions format_options(const DataOptions& options, ReadEngine engine);
/// Warns of what the user has to hear of the data set once.
void tell_notes(const DataSetFacts& facts);
/// How the values of such data are decoded, given what the user says. Throws usage.
CodecOptions codec_of(const DataSetFacts& facts, const CodecOptions& wanted);
/// The same of those that become arrays. Throws unsupported for fields without values.
CodecOptions codec_of_arrays(const DataSetFacts& facts, const CodecOptions& wanted);

/// A data set and what reads it. Its owner may have other readers of data->whole() take the place
/// of `bulk`: MPI's.
struct OpenedData {
  std::shared_ptr<DataSet> data;
  std::unique_ptr<RecordSource> walk;    ///< of strategies that walk
  std::unique_ptr<BulkReader> bulk;      ///< of those that plan
  std::unique_ptr<BulkReader> together;  ///< for what all roots read at once; null: `bulk`

  /// The one file that holds all samples, for engines that open it for themselves; null where there
  /// are several.
  std::shared_ptr<const File> only_file() const;
};

/// Opens the data set with what serves `setup`, which changes where the system refuses the engine
/// and another may replace it. `format` is a name of the registry. A stop of `stop` ends reads that
/// wait for an answer. Collective over `peers`, the roots.
OpenedData open_to_read(const std::string& path, const std::string& format,
                        const LoaderOptions& options, ReadSetup& setup, const std::stop_token& stop,
                        Peers& peers);

/// The files of a data set once more, mapped: what of them is in memory is used there. Thread-safe.
class InPlace {
 public:
  using Files = std::vector<std::shared_ptr<const MmapFile>>;
  /// `points`: entries of the stage point there, instead of at copies. `brings`: what is not in the
  /// page cache is brought there.
  InPlace(std::shared_ptr<const DataSet> data, Files files, bool points, bool brings)
      : data_(std::move(data)), files_(std::move(files)), points_(points), brings_(brings) {}

  const Files& files() const { return files_; }
  bool points() const { return points_; }
  bool brings() const { return brings_; }
  /// Throws changed or io when what entries point at may be something else than it was when it was
  /// published.
  void check() const;
  std::string describe() const;

 private:
  std::shared_ptr<const DataSet> data_;
  Files files_;
  bool points_, brings_;
};

/// What fills the stage.
struct StageReader {
  std::unique_ptr<PieceReader> reader;
  std::shared_ptr<const InPlace> in_place;  ///< null where nothing is mapped
};

/// One object a root. The reader that it makes, and its thread, keep it alive.
class DataAccess {
 public:
  DataAccess(OpenedData opened, const LoaderOptions& options, const ReadSetup& setup,
             std::stop_token stop);

  DataFacts facts() const;
  /// Finds out where the samples are, if opening has not: then each root would for itself, when it
  /// needs them. Collective over `peers`.
  void locate(Peers& peers);
  /// Memory of the index, which the roots of a node share.
  std::uint64_t index_bytes() const { return opened_.data->index_bytes(); }
  /// How its values are decoded, given what the user says. Throws usage, unsupported.
  CodecOptions codec(const CodecOptions& wanted) const {
    return codec_of_arrays(opened_.data->facts(), wanted);
  }
  /// Hands `sample` to `sink`, by reading little else. Local; by one thread, and by none from
  /// make_reader() on, when what reads is the reader's. Throws what reading throws.
  void read_sample(std::uint64_t sample, const RecordSink& sink);
  /// What bringing `runs` into the stage takes; nothing where that is not known without walking.
  std::optional<ReadOutline> outline(std::span<const SampleRun> runs,
                                     std::uint64_t gap_bytes) const;
  /// What `runs` take in the stage where they are copied there, or somewhat less; nothing where
  /// that is not known without walking.
  std::optional<std::uint64_t> stage_bytes(std::span<const SampleRun> runs) const;
  /// "provenance (table) from t.forebay, uring, 16 in flight": how it is located and read.
  std::string describe() const;
  /// Called once. This object outlives the reader.
  StageReader make_reader(const ReaderSite& site);

 private:
  std::shared_ptr<const InPlace> use_in_place(const ReaderSite& site) const;

  OpenedData opened_;
  LoaderOptions options_;
  ReadSetup setup_;
  std::stop_token stop_;
};

}  // namespace forebay
