// Which samples were left out because they do not decode: each once, however many epochs meet it.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "forebay/loader.hpp"

namespace forebay {

/// One thread at a time.
class SkippedList {
 public:
  static constexpr std::size_t kMostListed = 1000;
  static constexpr std::size_t kMostLogged = 20;

  /// Lists and logs those that are new, as long as the list is not full. `file` is for the log.
  void add(const std::string& file, std::span<const SkippedSample> skipped);
  std::span<const SkippedSample> all() const { return listed_; }

 private:
  std::vector<SkippedSample> listed_;
  std::set<std::uint64_t> ids_;  ///< of those
};

}  // namespace forebay
