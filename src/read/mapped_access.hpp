// LMDB data whose samples are not simply the records of one database, behind DataAccess: several
// databases, several records a sample, another order, records that are no samples.
//
// Located as records are (provenance or scan, database by database), and read by ExtentReader: the
// index in front of it (format/convention/mapped_index.hpp) turns samples into records. Where a
// sample has several parts, they are put together in the stage, behind the pages that they are in:
// such a window takes about twice the room.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/convention/mapped_source.hpp"
#include "read/data_access.hpp"
#include "read/locate.hpp"

namespace forebay {

/// What `options` say of conventions.
convention::ConventionOptions convention_options(const LoaderOptions& options);

class MappedAccess final : public DataAccess, public std::enable_shared_from_this<MappedAccess> {
 public:
  MappedAccess(std::string path, const LoaderOptions& options)
      : path_(std::move(path)), options_(options) {}

  void open(ReadSetup& setup, std::stop_token stop, Peers& peers) override;
  DataFacts facts() const override;
  std::shared_ptr<const File> only_file() const override {
    return set_->size() == 1 ? set_->whole() : nullptr;
  }
  void read_with(std::unique_ptr<BulkReader> own, std::unique_ptr<BulkReader> together) override {
    bulk_ = std::move(own);
    together_ = std::move(together);
  }
  CodecOptions codec(const CodecOptions& wanted) const override;
  void read_sample(std::uint64_t sample, const RecordSink& sink) override;
  std::optional<ReadOutline> outline(std::span<const SampleRun> runs,
                                     std::uint64_t gap_bytes) override;
  std::string describe() const override;
  std::unique_ptr<PieceReader> make_reader(const ReaderSite& site) override;
  void locate(const ReadSetup& setup, const LocatingRanks& ranks) override;
  std::uint64_t index_bytes() const override;

 private:
  void locate_database(const ReadSetup& setup, const LocatingRanks& ranks, std::size_t number,
                       std::vector<convention::IndexedRecords>& indexes);

  std::string path_;
  LoaderOptions options_;
  std::shared_ptr<convention::DatabaseSet> set_;  ///< on roots
  std::unique_ptr<convention::MappedSource> source_;
  std::unique_ptr<BulkReader> bulk_;
  std::unique_ptr<BulkReader> together_;  ///< when all roots read at once
  std::vector<std::shared_ptr<SharedMemory>> index_memory_;
  std::unique_ptr<RecordIndex> index_;  ///< until the reader takes it
  std::string how_;                     ///< the first database was located
};

}  // namespace forebay
