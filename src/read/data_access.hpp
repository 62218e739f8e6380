// A data set as a loader reads it: what opening, agreeing and reading need.
//
//   open         roots            facts, first value     rank 0        what the others are told
//   locate       roots            make_reader            roots         what fills the stage
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
  std::uint64_t stored_bytes = 0;  ///< what a window of all samples takes in the stage, or more
  bool local = false;              ///< on a device of this node
  /// Samples are put together from what was read, in memory beside the stage.
  bool assembled = false;
  /// First sample of each file that has any, and the number of samples; empty for one file.
  std::vector<std::uint64_t> files;
  std::vector<std::string> parts;  ///< of packed samples, by name (forebay/packed_parts.hpp)
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

/// One object a root. The reader that it makes, and its thread, keep it alive.
class DataAccess : public std::enable_shared_from_this<DataAccess> {
 public:
  /// `format` is a name of the registry.
  DataAccess(std::string path, const LoaderOptions& options, std::string format)
      : path_(std::move(path)), options_(options), format_(std::move(format)) {}

  /// Opens the data set with what serves `setup`, which changes where the system refuses the engine
  /// and another may replace it. A stop of `stop` ends reads that wait for an answer. Collective
  /// over `peers`, the roots.
  void open(ReadSetup& setup, std::stop_token stop, Peers& peers);
  DataFacts facts() const;
  /// The one file that holds all samples, for engines that open it for themselves; null where there
  /// are several.
  std::shared_ptr<const File> only_file() const;
  /// Reads with `own` from now on and, for what all roots read at once, with `together`, which may
  /// be null. Before locate().
  void read_with(std::unique_ptr<BulkReader> own, std::unique_ptr<BulkReader> together);
  /// Finds out where the samples are, if opening has not. Collective over `peers`.
  void locate(Peers& peers);
  /// Memory of the index, which the roots of a node share.
  std::uint64_t index_bytes() const { return data_->index_bytes(); }
  /// How its values are decoded, given what the user says. Throws usage.
  CodecOptions codec(const CodecOptions& wanted) const { return codec_of(data_->facts(), wanted); }
  /// Hands `sample` to `sink`, by reading little else. Local; before make_reader(), from which on
  /// the data are the reader's. Throws what reading throws.
  void read_sample(std::uint64_t sample, const RecordSink& sink);
  /// What bringing `runs` into the stage takes; nothing where that is not known without walking.
  std::optional<ReadOutline> outline(std::span<const SampleRun> runs,
                                     std::uint64_t gap_bytes) const;
  /// "provenance (table) from t.forebay, uring, 16 in flight": how it is located and read.
  std::string describe() const;
  /// Called once. This object outlives the reader.
  std::unique_ptr<PieceReader> make_reader(const ReaderSite& site);
  /// Throws changed or io when what entries of the stage point at in place may be something else
  /// than it was when it was published. Thread-safe, after make_reader().
  void check_in_place() const;
  /// What is used where it lies, in words; empty when nothing is. From make_reader() on.
  std::string describe_in_place() const;

 private:
  void open_files(ReadSetup& setup, const BulkOptions& bulk, Peers& peers);
  std::shared_ptr<const MmapFile> map_beside() const;

  std::string path_;
  LoaderOptions options_;
  std::string format_;
  ReadSetup setup_;
  std::stop_token stop_;
  std::shared_ptr<DataSet> data_;
  std::unique_ptr<RecordSource> walk_;      ///< of strategies that walk
  std::unique_ptr<BulkReader> bulk_;        ///< of those that plan, until the reader takes it
  std::unique_ptr<BulkReader> together_;    ///< when all roots read at once
  std::shared_ptr<const MmapFile> mapped_;  ///< when samples may be used in place
};

}  // namespace forebay
