// Samples that are fetched ahead of their use: the in-memory pipeline of DeepIO (Zhu et al.,
// MASCOTS 2018, section III.B).
//
//   I/O thread: next batch of wanted samples -> assign blocks -> Exchange::fetch -> ready
//   consumer:   next() waits for the oldest block -> uses it in place -> release()
//
// Samples come in the order in which they were wanted. The ring bounds the memory; the thread waits
// when it is full, the consumer when nothing is ready.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/placement.hpp"
#include "exchange/block_ring.hpp"
#include "exchange/exchange.hpp"
#include "forebay/trace.hpp"

namespace forebay {

/// Samples of one generation, in the order of their use.
struct WantedBatch {
  std::uint64_t generation = 0;
  std::vector<Wanted> wanted;
  bool last = false;  ///< of its generation on this rank: which is released then
};

struct ReadBufferOptions {
  std::size_t bytes = std::size_t{64} << 20;  ///< for samples
  std::size_t beside = 0;     ///< taken when it is needed, for samples larger than all of `bytes`
  std::size_t blocks = 4096;  ///< samples at most
  std::chrono::milliseconds patience = std::chrono::minutes(10);  ///< of next()
  /// Whether samples are fetched before they are asked for. If not, waiting shows all that
  /// fetching takes.
  bool ahead = true;
  Placement placement;  ///< of the I/O thread
  /// Called now and then while next() waits, in its thread; may be empty, may throw to end the
  /// wait.
  std::function<void()> interrupt = {};
  Trace* trace = nullptr;  ///< not touched any more after stop()
};

struct ReadBufferFigures {
  std::uint64_t samples = 0;
  double exposed_seconds = 0;  ///< the consumer waited for samples
  double full_seconds = 0;     ///< the I/O thread waited for an empty block: large is good
};

/// Local. The consumer's methods are for one thread, stop() among them.
class ReadBuffer {
 public:
  /// Gives the next batch, empty at the end. Called by the I/O thread, ahead of the consumer. What
  /// it throws reaches the consumer.
  using Source = std::function<std::optional<WantedBatch>()>;

  /// Starts the thread. Throws usage for a placement that is not possible.
  ReadBuffer(std::shared_ptr<Exchange> exchange, const ReadBufferOptions& options, Source source);
  /// Ends the thread, also in the middle of a fetch; waits at most 5 s for it, and logs when it has
  /// to be left behind.
  ~ReadBuffer();
  ReadBuffer(const ReadBuffer&) = delete;
  ReadBuffer& operator=(const ReadBuffer&) = delete;

  /// The next sample, valid until it is released; null after the last one. Throws, again and again,
  /// what has ended the I/O thread (with sample, and owner), once all samples before it were taken;
  /// and at once what has failed on another rank; communication past the patience; usage when
  /// full().
  const Block* next();
  /// Appends up to `most` samples that are ready to `to`, after waiting for the first of them.
  /// Gives nothing at the end, and when full(). Throws as next().
  void take(std::size_t most, std::vector<const Block*>& to);
  /// Whether nothing more comes until samples are released: those that were given fill the ring.
  bool full() const;
  /// Gives back the oldest `count` samples that next() has given.
  void release(std::size_t count = 1);

  /// Ends the thread as the destructor does, and lets go of the exchange. Samples that were given
  /// stay valid; there are no others any more. Idempotent.
  void stop();

  ReadBufferFigures figures() const;

 private:
  class Work;

  WaitPolicy policy_;
  std::shared_ptr<Work> work_;
  HelperThread thread_;
};

}  // namespace forebay
