// tf.train.Example, read in place (format/codec/wire.hpp). Any bytes are safe to pass.
//
//   Example   1 Features
//   Features  1 entry*           entry    1 name, 2 Feature
//   Feature   1 BytesList, 2 FloatList or 3 Int64List
//   lists     1 value*           numbers packed into one field, or a field each, or both
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace forebay::tfrecord {

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

}  // namespace forebay::tfrecord
