// Samples of fields of fixed size that lie apart: HDF5, .npy, records.
//
//   sample ids    0 ............. | ............. | ............. N-1
//                 part 0            part 1          part 2          (a part is mostly a file)
//
//   a part        field x  [row 0][row 1][row 2]...                 each field stored its way:
//                 field y  [chunk: rows 0-9][chunk: rows 10-19]...  FieldStorage
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "format/data_set.hpp"
#include "format/field_storage.hpp"

namespace forebay {

/// One field of a part, and which of the data set's files holds it.
struct PartField {
  std::uint32_t file = 0;
  std::shared_ptr<const FieldStorage> storage;
};

/// Consecutive samples whose fields are stored alike; `fields` as the schema has them.
struct SamplePart {
  std::uint64_t rows = 0;
  std::vector<PartField> fields;
};

class FieldSet final : public DataSet {
 public:
  /// Every part has all fields of `schema`; `notes` as DataSetFacts::notes.
  FieldSet(std::string path, std::string format, Schema schema, DataFiles files,
           std::vector<SamplePart> parts, std::vector<std::string> notes = {});

  std::unique_ptr<const Plan> plan_runs(std::span<const IdRun> runs) const override;
  void check_files(const std::function<void(const Error&)>& sink) const override;
  DecodeCounters counters() const override;

  /// In the order of samples: as given.
  std::span<const SamplePart> parts() const { return parts_; }

 private:
  friend class FieldPlan;

  void tell_storage();
  std::vector<std::uint64_t> samples_of_files() const;

  std::vector<SamplePart> parts_;
  std::vector<std::uint64_t> first_;  // first id of each part, and the number of samples
  mutable std::atomic<std::uint64_t> chunks_ = 0;
  mutable std::atomic<std::uint64_t> bytes_decoded_ = 0;
};

}  // namespace forebay
