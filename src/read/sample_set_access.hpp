// Files with fields behind DataAccess: HDF5, raw records, CIFAR-10, .npy. Nothing has to be
// located.
#pragma once

#include <memory>
#include <string>

#include "format/open_samples.hpp"
#include "read/data_access.hpp"

namespace forebay {

/// What `options` say of how files with fields are opened.
SampleOptions sample_options(const LoaderOptions& options);

class SampleSetAccess final : public DataAccess {
 public:
  /// `format` as SampleOptions::format.
  SampleSetAccess(std::string path, const LoaderOptions& options, std::string format)
      : path_(std::move(path)), options_(options), format_(std::move(format)) {}

  void open(ReadSetup& setup, std::stop_token stop) override;
  DataFacts facts() const override;
  CodecOptions codec(const CodecOptions& wanted) const override;
  void read_sample(std::uint64_t sample, const RecordSink& sink) override;
  std::optional<ReadOutline> outline(std::span<const SampleRun> runs,
                                     std::uint64_t gap_bytes) override;
  std::string describe() const override;
  std::unique_ptr<PieceReader> make_reader(const ReaderSite& site) override;
  void locate(const ReadSetup&, const LocatingRanks&) override {}

 private:
  std::string path_;
  LoaderOptions options_;
  std::string format_;
  std::unique_ptr<SampleSource> source_;
  std::unique_ptr<BulkReader> bulk_;  ///< until the reader takes it
};

}  // namespace forebay
