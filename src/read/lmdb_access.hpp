// LMDB behind DataAccess: the records' extents come from an index, or a source walks to them.
#pragma once

#include <memory>
#include <string>

#include "format/lmdb/database.hpp"
#include "read/data_access.hpp"
#include "read/extent_reader.hpp"
#include "read/locate.hpp"
#include "storage/mmap_file.hpp"

namespace forebay {

class LmdbAccess final : public DataAccess, public std::enable_shared_from_this<LmdbAccess> {
 public:
  LmdbAccess(std::string path, const LoaderOptions& options)
      : path_(std::move(path)), options_(options) {}

  void open(ReadSetup& setup, std::stop_token stop, Peers& peers) override;
  DataFacts facts() const override;
  std::shared_ptr<const File> only_file() const override {
    return database_->snapshot().shared_file();
  }
  void read_with(std::unique_ptr<BulkReader> own, std::unique_ptr<BulkReader> together) override {
    bulk_ = std::move(own);
    together_ = std::move(together);
  }
  void read_sample(std::uint64_t sample, const RecordSink& sink) override;
  std::optional<ReadOutline> outline(std::span<const SampleRun> runs,
                                     std::uint64_t gap_bytes) override;
  std::string describe() const override;
  std::unique_ptr<PieceReader> make_reader(const ReaderSite& site) override;
  void check_in_place() const override;
  std::string describe_in_place() const override;
  void locate(const ReadSetup& setup, const LocatingRanks& ranks) override;
  std::uint64_t index_bytes() const override {
    return located_.memory ? located_.memory->bytes().size() : 0;
  }

 private:
  void open_mapped(ReadSetup& setup);
  void open_with(Engine engine);
  std::shared_ptr<const MmapFile> map_beside() const;
  std::unique_ptr<PieceReader> hand_on(const ReaderSite& site);
  std::unique_ptr<PieceReader> read_scattered(const ReaderSite& site);
  std::unique_ptr<PieceReader> read_extents(const ReaderSite& site, PrepareIndex prepare,
                                            std::function<void()> leave);

  std::string path_;
  LoaderOptions options_;
  Locate how_ = Locate::seek;
  ReadEngine engine_ = ReadEngine::mmap;
  std::unique_ptr<RecordSource> source_;
  lmdb::Database* database_ = nullptr;      ///< inside source_; null for the baseline
  std::unique_ptr<BulkReader> bulk_;        ///< when extents are read
  std::unique_ptr<BulkReader> together_;    ///< when all roots read them at once
  std::shared_ptr<const MmapFile> mapped_;  ///< when records may be used in place
  bool large_apart_ = false;                ///< large records at random places
  std::stop_token stop_;
  Located located_;
};

}  // namespace forebay
