// Samples of a convention: a DataSet that is a view over data sets, one a database, whose samples
// are records.
//
//   sample ids --> records of each database --> its plan --> extents of its file
//
// A sample of one part is its record, in place. Several parts become one packed value
// (forebay/packed_parts.hpp); its key is what the parts' keys have in common, the number or the
// whole key. Keys of parts that do not belong together are an error that names the missing one: no
// sample is ever made of other records.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/convention/convention.hpp"
#include "format/lmdb/lmdb_set.hpp"
#include "format/registry.hpp"

namespace forebay::convention {

class ConventionSet final : public DataSet {
 public:
  /// `databases` are those of `convention`, in its order; `order_by` is told by info().
  ConventionSet(std::string path, std::vector<std::unique_ptr<lmdb::LmdbSet>> databases,
                Convention convention, KeyOrder order_by);

  std::unique_ptr<const Plan> plan_runs(std::span<const IdRun> runs) const override;
  void keys(const KeySink& sink) const override;
  std::string look_at_pages() const override;
  std::optional<PagesReport> check_pages(std::size_t most_faults,
                                         const RecordSink& sink) const override;
  void locate(Peers& peers, BulkReader& reader) override;
  bool give_up_index(const Error& mismatch) const override;
  std::uint64_t index_bytes() const override;
  std::uint64_t used_index_bytes() const override;
  std::uint64_t stored_bytes() const override;
  using DataSet::check_unchanged;
  void check_unchanged(std::uint32_t file) const override { databases_[file]->check_unchanged(0); }
  std::string describe() const override;
  const Convention& convention() const { return convention_; }
  std::string info() const override;
  DecodeCounters counters() const override;

 private:
  friend class ConventionPlan;

  void join_labels();

  std::vector<std::unique_ptr<lmdb::LmdbSet>> databases_;
  Convention convention_;
  KeyOrder order_by_;
  std::vector<std::uint64_t> first_records_;  ///< of each database
};

/// `text` as database_list.hpp says, also where it needs no view. Throws as Database::open, and
/// Convention::arrange.
std::unique_ptr<ConventionSet> open_by_convention(const std::string& text,
                                                  const FormatOptions& options);

/// The row of the registry: LMDB, by whatever convention.
Format lmdb_format();

}  // namespace forebay::convention
