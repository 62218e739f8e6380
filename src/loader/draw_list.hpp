// What one rank reads, buffer by buffer over all epochs: for its reading thread, which loads them,
// and for its consumer, who draws from them.
//
//   epoch 0                      epoch 1
//   |buffer 0 |buffer 1 |buffer 2|buffer 3 |buffer 4 ...     windows of the stage
//    draws 0.. draws 96..          draws 0..
//
// Buffers of which the rank draws nothing are left out.
#pragma once

#include <memory>
#include <mutex>

#include "loader/buffer_walk.hpp"

namespace forebay {

struct DrawBuffer {
  std::uint64_t epoch = 0;
  std::uint64_t first = 0;  ///< draws of the rank in the epoch, from here on
  std::uint64_t count = 0;
  std::uint64_t first_slot = 0;  ///< of the order's buffer that this is, or is a piece of
  std::vector<SampleRun> runs;   ///< by sample: near to how they lie in the file

  bool serves(std::uint64_t of_epoch, std::uint64_t draw) const {
    return epoch == of_epoch && draw >= first && draw - first < count;
  }
};

/// Thread-safe.
class DrawList final : public ReadingList {
 public:
  /// How the first buffer of the run is read: whole, or, where the order has nothing against it, in
  /// pieces that begin with one iteration and double, so that the first batch need not wait for
  /// all.
  enum class Begin : std::uint8_t { whole, small };

  /// No buffer may hold more than `most_samples`.
  DrawList(RunEpochs epochs, int rank, std::uint64_t most_samples, Begin begin = Begin::whole);

  /// Buffer `number`, from what was not forgotten on; nothing behind the end of the run.
  std::shared_ptr<const DrawBuffer> at(std::uint64_t number);
  /// Buffers below `number` are not asked for any more.
  void forget(std::uint64_t number);

  std::uint64_t iterations(std::uint64_t window) override { return at(window) ? 1 : 0; }
  std::vector<SampleRun> runs(const WindowPart& part) override { return at(part.window)->runs; }

 private:
  void extend();
  void add(const Buffer& buffer, const Run& draws, const Run& loads);
  void add_pieces(const Buffer& buffer);

  std::mutex mutex_;
  BufferWalk walk_;
  std::uint64_t most_samples_;
  Begin begin_;  ///< of the next buffer
  bool ended_ = false;
  Numbered<DrawBuffer> buffers_;
};

}  // namespace forebay
