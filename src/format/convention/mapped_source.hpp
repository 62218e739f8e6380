// Samples of a convention by walking to each record: slow, and always possible. For first looks,
// and for whoever asks whether the databases are unchanged.
#pragma once

#include <memory>
#include <vector>

#include "format/convention/database_set.hpp"
#include "format/convention/mapped_index.hpp"
#include "format/record_source.hpp"

namespace forebay::convention {

/// Local, one thread at a time.
class MappedSource final : public RecordSource {
 public:
  explicit MappedSource(std::shared_ptr<DatabaseSet> set);

  const std::string& path() const override { return set_->path(); }
  std::uint64_t entries() const override { return set_->samples(); }
  std::uint64_t stored_bytes() const override { return set_->stored_bytes(); }
  DatasetFingerprint fingerprint() const override { return set_->fingerprint(); }
  void seek(std::uint64_t sample) override { position_ = sample; }
  void read(std::uint64_t count, const RecordSink& sink) override;
  void check_unchanged() override { set_->check_unchanged(); }
  SourceCounters counters() const override;

 private:
  std::shared_ptr<DatabaseSet> set_;
  MappedIndex by_walking_;
  std::uint64_t position_ = 0;
};

}  // namespace forebay::convention
