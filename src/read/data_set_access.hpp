// A DataSet behind DataAccess: any format but LMDB. Nothing has to be located.
#pragma once

#include <memory>
#include <string>

#include "format/registry.hpp"
#include "read/data_access.hpp"

namespace forebay {

/// What `options` say of how such files are opened.
FormatOptions format_options(const DataOptions& options, ReadEngine engine);

/// Warns of what the user has to hear of the data set once.
void tell_notes(const DataSetFacts& facts);
/// How the values of such data are decoded, given what the user says. Throws usage.
CodecOptions codec_of(const DataSetFacts& facts, const CodecOptions& wanted);

class DataSetAccess final : public DataAccess {
 public:
  /// `format` as FormatOptions::format.
  DataSetAccess(std::string path, const LoaderOptions& options, std::string format)
      : path_(std::move(path)), options_(options), format_(std::move(format)) {}

  void open(ReadSetup& setup, std::stop_token stop, Peers& peers) override;
  DataFacts facts() const override;
  std::shared_ptr<const File> only_file() const override;
  /// Never together: how many reads a part takes differs between roots.
  void read_with(std::unique_ptr<BulkReader> own, std::unique_ptr<BulkReader> /*none*/) override {
    bulk_ = std::move(own);
  }
  CodecOptions codec(const CodecOptions& wanted) const override;
  void read_sample(std::uint64_t sample, const RecordSink& sink) override;
  std::optional<ReadOutline> outline(std::span<const SampleRun> runs,
                                     std::uint64_t gap_bytes) override;
  std::string describe() const override;
  std::unique_ptr<PieceReader> make_reader(const ReaderSite& site) override;
  /// Nothing is left to locate: says what the user has to know, once.
  void locate(const ReadSetup&, const LocatingRanks& ranks) override;

 private:
  std::string path_;
  LoaderOptions options_;
  std::string format_;
  std::unique_ptr<DataSet> data_;
  std::unique_ptr<BulkReader> bulk_;  ///< until the reader takes it
};

}  // namespace forebay
