// The records of TFRecord files as a data set.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/data_set.hpp"
#include "format/dataset_files.hpp"
#include "format/tfrecord/example.hpp"

namespace forebay::tfrecord {

inline constexpr std::uint64_t kHeader = 12;
inline constexpr std::uint64_t kAround = kHeader + 4;  ///< bytes of a record that are not its data
inline constexpr const char* kRestore = "the file is damaged: copy it again from its source";

/// The length that a header tells. Throws corrupt where its checksum does not fit.
std::uint64_t data_bytes(std::span<const std::byte> header);

struct RecordIndex {
  std::vector<std::uint64_t> begins;    ///< of each record, in its file
  std::vector<std::uint64_t> first{0};  ///< record of each file, and the number of records
};

/// A feature that samples have, and which of their parts its values are.
struct WantedFeature {
  std::string stored;
  FeatureKind kind = FeatureKind::none;
  std::optional<std::uint64_t> count;  ///< of values, the same in every record; of texts, one
  std::optional<std::size_t> values;   ///< part
  std::optional<std::size_t> lengths;  ///< part, of texts: bytes of each
};

class RecordSet final : public DataSet {
 public:
  /// Throws corrupt, not_found, usage, io.
  RecordSet(std::string path, DataFiles files, RecordIndex index,
            std::span<const FieldChoice> choices);

  std::unique_ptr<const Plan> plan_runs(std::span<const IdRun> runs) const override;

 private:
  friend class RecordPlan;
  friend class Look;

  FileExtent extent(std::uint64_t id) const;
  void add_part(const FieldChoice& choice, const class Look& look);
  void tell_sizes(double growth);

  RecordIndex index_;
  std::vector<WantedFeature> features_;  ///< empty: records are samples as they are
};

}  // namespace forebay::tfrecord
