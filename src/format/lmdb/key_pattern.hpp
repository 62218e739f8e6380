// Recognizes how the keys of a data set are made, from one pass over them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace forebay::lmdb {

class KeyPattern {
 public:
  void add(std::span<const std::byte> key);
  /// In words; see DatabaseReport::key_pattern.
  std::string text(bool integer_keys) const;

 private:
  std::uint64_t count_ = 0;
  std::size_t least_ = 0;
  std::size_t most_ = 0;
  bool all_digits_ = true;
  bool digits_then_name_ = true;  ///< a number, '_', and more, as Caffe writes them
  bool printable_ = true;
  std::string common_;  ///< prefix that all keys share
};

}  // namespace forebay::lmdb
