// TFRecord files: records of any size, one behind the other.
//
//   length, 8 bytes | masked CRC-32C of it, 4 | data | masked CRC-32C of them, 4
//
// One walk over the lengths finds the records. The checksum of data is looked at whenever they are
// read, but where they are used in the page cache once, at their first use since open: summing them
// costs more than all else there. Where records are tf.train.Examples, parts of a sample
// are features: texts, singles and integers of 64 bits as arrays have them. Which features there
// are tell some records, and each that is read has to agree. Other records are samples as they are.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/data_set.hpp"
#include "format/dataset_files.hpp"
#include "format/registry.hpp"

namespace forebay::tfrecord {

/// CRC-32C (Castagnoli) of `bytes` as TFRecord stores it, masked: turned and shifted so that data
/// with their own checksums keep useful ones.
std::uint32_t masked_crc32c(std::span<const std::byte> bytes);

// tf.train.Example, read in place (format/codec/wire.hpp). Any bytes are safe to pass.
//
//   Example   1 Features
//   Features  1 entry*           entry    1 name, 2 Feature
//   Feature   1 BytesList, 2 FloatList or 3 Int64List
//   lists     1 value*           numbers packed into one field, or a field each, or both

enum class FeatureKind : std::uint8_t { none, bytes, floats, integers };

/// One feature of an Example; refers to its bytes.
struct Feature {
  std::string_view name;
  FeatureKind kind = FeatureKind::none;
  std::vector<std::span<const std::byte>> lists;  ///< mostly one; several are joined
};

/// Calls `take` with each feature. Throws corrupt for what is no Example.
void read_example(std::span<const std::byte> example,
                  const std::function<void(const Feature&)>& take);

/// The values of a feature's lists, one behind the other: texts as they are, singles, integers of
/// 64 bits; inside of a list where they lie there so, else appended to `memory`.
struct FeatureValues {
  std::uint64_t count = 0;
  std::span<const std::byte> in_place;  ///< empty: all that was appended
};
/// `lengths`: of texts, appended. Throws corrupt.
FeatureValues read_values(const Feature& feature, std::vector<std::byte>& memory,
                          std::vector<std::int64_t>* lengths = nullptr);

// The records of files as a data set.

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
  bool is_checked(std::uint64_t id) const {
    return (checked_[id / 64].load(std::memory_order_relaxed) >> id % 64 & 1) != 0;
  }
  void set_checked(std::uint64_t id) const {
    checked_[id / 64].fetch_or(std::uint64_t{1} << id % 64, std::memory_order_relaxed);
  }
  void add_part(const FieldChoice& choice, const class Look& look);
  void tell_sizes(double growth);

  RecordIndex index_;
  mutable std::vector<std::atomic<std::uint64_t>> checked_;  ///< a bit a record
  std::vector<WantedFeature> features_;  ///< empty: records are samples as they are
};

/// Throws corrupt, unsupported, not_found, usage, io, naming file and offset.
std::unique_ptr<DataSet> open_records(const std::string& text, DataFiles files,
                                      std::span<const FieldChoice> choices);

Format tfrecord_format();

}  // namespace forebay::tfrecord
