// What one rank reads for itself, buffer by buffer over all epochs.
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
#include "loader/draw_buffers.hpp"

namespace forebay {

class DrawList final : public DrawBuffers {
 public:
  /// No buffer may hold more than `most_samples`.
  DrawList(RunEpochs epochs, int rank, std::uint64_t most_samples, Begin begin = Begin::whole);

  std::shared_ptr<const DrawBuffer> at(std::uint64_t number) override { return listed(number); }
  void forget(std::uint64_t number, std::uint64_t window) override;
  std::optional<std::uint64_t> windows_for(std::uint64_t, std::uint64_t) override { return {}; }

  std::uint64_t iterations(std::uint64_t window) override { return listed(window) ? 1 : 0; }
  std::vector<SampleRun> runs(const WindowPart& part) override { return listed(part.window)->runs; }

 private:
  struct Listed : DrawBuffer {
    std::vector<SampleRun> runs;  ///< by sample: near to how they lie in the file
  };

  std::shared_ptr<const Listed> listed(std::uint64_t number);
  void extend();
  void add(const Buffer& buffer, const Run& draws, const Run& loads);
  void add_pieces(const Buffer& buffer);

  std::mutex mutex_;
  BufferWalk walk_;
  std::uint64_t most_samples_;
  Begin begin_;  ///< of the next buffer
  bool ended_ = false;
  Numbered<Listed> buffers_;
};

}  // namespace forebay
