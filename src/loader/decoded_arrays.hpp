// The memory that batches are decoded into, and where their fields lie in it.
//
//   | field 0: sample 0, sample 1, ... | field 1: sample 0, sample 1, ... | ...
//
// One piece of memory a batch, each field at a multiple of 64 bytes. A batch that is released gives
// its memory back to the pool that it came from, so that a run allocates as many pieces as there
// are batches at once, and touches no new pages after the first of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "core/private_memory.hpp"
#include "forebay/dataset.hpp"

namespace forebay {

/// Pieces of memory that are used again. Thread-safe. Pieces that are out keep the pool alive.
class ArrayPool : public std::enable_shared_from_this<ArrayPool> {
 public:
  /// Keeps at most `most_free` pieces that nobody uses.
  explicit ArrayPool(std::size_t most_free) : most_free_(most_free) {}

  /// At least `bytes`, aligned to 64, not initialized.
  std::shared_ptr<std::byte> take(std::size_t bytes);

 private:
  using Piece = MemoryPiece;

  Piece get(std::size_t bytes);
  void give_back(Piece piece) noexcept;

  const std::size_t most_free_;
  std::mutex mutex_;
  std::vector<Piece> free_;  ///< guarded by mutex_, as is the next
  std::size_t largest_ = 0;  ///< that was asked for: short batches come late
};

/// The fields of one batch. One thread at a time, but for of_sample() of different samples.
class DecodedArrays {
 public:
  /// Room for `samples`, all to be filled. `schema` must outlive it. Throws usage when that exceeds
  /// the address space.
  DecodedArrays(std::shared_ptr<const Schema> schema, std::size_t samples, ArrayPool& pool);

  /// Bytes of the arrays of `samples`. Throws usage as the constructor.
  static std::size_t bytes_of(const Schema& schema, std::size_t samples);

  std::span<std::byte> of_sample(std::size_t field, std::size_t sample) const;
  /// Closes the gaps where `samples`, ascending, have not been filled.
  void remove(std::span<const std::size_t> samples);

  std::size_t samples() const { return samples_; }
  /// Throws usage for a field that does not exist.
  std::span<const std::byte> field(std::size_t index) const;
  std::span<const std::byte> field(std::string_view name) const;

 private:
  std::shared_ptr<const Schema> schema_;
  std::size_t samples_;
  std::vector<std::size_t> offsets_;      ///< of the fields
  std::vector<std::size_t> field_bytes_;  ///< of one sample
  std::shared_ptr<std::byte> memory_;
};

}  // namespace forebay
