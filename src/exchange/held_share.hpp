// This rank's share of the data set while it is being filled: samples one behind the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace forebay {

/// Local, for one thread at a time.
class HeldShare {
 public:
  HeldShare() = default;
  /// Fills `memory`, which outlives this object. `sample_bytes`: the size of all samples; 0 where
  /// they differ.
  /// `reserve(begin, end)` is called before bytes [begin, end) of it are touched; empty: they are
  /// there.
  HeldShare(std::span<std::byte> memory, std::uint64_t sample_bytes,
            std::function<void(std::uint64_t, std::uint64_t)> reserve = {})
      : memory_(memory), sample_bytes_(sample_bytes), reserve_(std::move(reserve)) {}

  /// Room for the next sample, or for several: to be filled before the share is opened. Sample i of
  /// this share is the i-th that was taken here. Throws usage when there is too little room, or a
  /// sample has another size than all, and what `reserve` throws.
  std::span<std::byte> take(std::uint64_t bytes) { return take(std::span(&bytes, 1)); }
  std::span<std::byte> take(std::span<const std::uint64_t> bytes);
  /// Copies the next sample into the share. Throws as take() does.
  void append(std::span<const std::byte> sample);
  void clear();

  std::uint64_t samples() const { return samples_; }
  std::uint64_t bytes() const { return used_; }
  std::uint64_t room() const { return memory_.size() - used_; }
  /// Where each sample ends; empty where all have one size.
  std::span<const std::uint64_t> ends() const { return ends_; }

 private:
  void back(std::uint64_t end);

  std::span<std::byte> memory_;
  std::uint64_t sample_bytes_ = 0;
  std::function<void(std::uint64_t, std::uint64_t)> reserve_;
  std::uint64_t backed_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t samples_ = 0;
  std::vector<std::uint64_t> ends_;
};

}  // namespace forebay
