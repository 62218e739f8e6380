// What `forebay verify` is made of: the check of one data set (verify.cc), and the comparison of
// two of them, sample by sample (compare.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/dataset_options.hpp"
#include "forebay/error.hpp"
#include "format/codec/codecs.hpp"
#include "format/data_set.hpp"

namespace forebay {

/// So many samples of such a data set are read together.
std::uint64_t samples_at_once(const DataSetFacts& facts);
/// Extents that lie closer are read as one.
inline constexpr std::uint64_t kVerifyGapBytes = std::uint64_t{64} << 10;

/// The number at the begin of `bytes`, which has room for it; nothing of types with fractions, nor
/// where it does not fit.
std::optional<std::int64_t> integer_at(ElementType type, std::span<const std::byte> bytes);

/// Decodes one value after the other, into memory of its own.
class Decoder {
 public:
  /// Where no sample that is looked at has a codec, the first value that has one decides.
  Decoder(const DataSet& data, const CodecOptions& options);

  void operator()(std::span<const std::byte> value);
  const Codec* codec() const { return codec_.get(); }
  /// Why there is none.
  const std::optional<Error>& problem() const { return problem_; }
  /// What the last value was decoded to: codec()->schema().
  std::span<const std::span<std::byte>> fields() const { return spans_; }

 private:
  void use(CodecPtr codec);

  CodecOptions options_;
  CodecPtr codec_;
  std::optional<Error> problem_;
  std::vector<std::vector<std::byte>> buffers_;  ///< one a field, for all values
  std::vector<std::span<std::byte>> spans_;
};

struct AgainstOptions {
  std::string path;  ///< empty: nothing is compared
  std::string format = "auto";
};

/// Compares all samples of `dataset` with those of `against`, and prints what it has found: at most
/// `most` samples that differ. Throws corrupt when there is one, and usage where samples of one
/// cannot be compared with those of the other.
void compare_data_sets(const DatasetOptions& dataset, const AgainstOptions& against,
                       std::uint64_t most);

}  // namespace forebay
