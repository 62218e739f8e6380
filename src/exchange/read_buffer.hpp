// Samples that are fetched ahead of their use: the in-memory pipeline of DeepIO (Zhu et al.,
// MASCOTS 2018, section III.B).
//
//   I/O thread: next batch of wanted samples -> assign blocks -> Exchange::fetch -> ready
//   consumer:   next() waits for the oldest block -> uses it in place -> release()
//
// Samples come in the order in which they were wanted. The ring bounds the memory; the thread waits
// when it is full, the consumer when nothing is ready.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "core/non_copyable.hpp"
#include "core/placement.hpp"
#include "core/private_memory.hpp"
#include "exchange/exchange.hpp"
#include "exchange/share.hpp"
#include "forebay/trace.hpp"

namespace forebay {

// The read buffer of DeepIO as a ring of tagged blocks (Zhu et al., MASCOTS 2018, section III.A,
// figure 5): one block a sample, of the sample's size, in the order in which samples are consumed.
//
//   released      taken         ready         assigned        free
//   ...........|  held by the |  filled, not |  being filled |  ............   (wraps around)
//                 consumer       taken yet
//   tag: empty    ready          ready           assigned        empty
//
// Memory is given out in the same order; a block that does not fit before the end begins anew at
// the front. A block larger than the whole ring has memory of its own, until it is released, and
// takes the least room in the ring to keep its place. Not synchronized.

enum class BlockTag : std::uint8_t { empty, assigned, ready };

struct Block {
  Wanted wanted;
  std::span<std::byte> bytes;
  BlockTag tag = BlockTag::empty;
};

class BlockRing {
 public:
  /// Memory for `bytes` in at most `blocks` blocks. Blocks that are larger have up to `beside`
  /// bytes together.
  BlockRing(std::size_t bytes, std::size_t blocks, std::size_t beside = 0);

  /// Whether a block of `bytes` fits when all others are empty.
  bool could_hold(std::uint64_t bytes) const;
  /// The next block, assigned to `wanted`; null when there is no room now.
  Block* assign(const Wanted& wanted, std::uint64_t bytes);
  /// The oldest `count` assigned blocks are ready.
  void set_ready(std::size_t count);
  /// The next block that is ready and was not taken; null when there is none.
  const Block* take();
  /// The next one to take, whatever its tag; null when nothing is assigned.
  const Block* next_to_take() const;
  /// The oldest `count` taken blocks are empty.
  void release(std::size_t count);

  std::uint64_t taken() const { return taken_ - released_; }
  bool none_ready() const { return taken_ == ready_; }
  std::size_t capacity() const { return capacity_; }
  /// The largest block that could_hold() says yes to.
  std::size_t largest() const { return std::max(capacity_, beside_); }
  /// Leaves the memory to whoever still writes into it.
  void leak_memory();

 private:
  static constexpr std::size_t kAlignment = 64;  // for vector loads
  using Memory = MemoryPiece;
  /// A block, and where it is.
  struct Entry {
    Block block;
    std::size_t begin = 0;  ///< offset in the ring
    Memory own;
  };

  static Memory allocate(std::size_t bytes);
  static std::size_t room_for(std::uint64_t bytes);
  Entry& at(std::uint64_t number) { return entries_[number % entries_.size()]; }
  const Entry& at(std::uint64_t number) const { return entries_[number % entries_.size()]; }
  bool find_room(std::size_t room);

  std::size_t capacity_;
  Memory memory_;
  std::vector<Entry> entries_;
  std::size_t beside_;
  std::size_t used_beside_ = 0;
  std::size_t tail_ = 0;  ///< offset of the next block
  // Blocks are numbered from the beginning; these only grow.
  std::uint64_t assigned_ = 0;
  std::uint64_t ready_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t released_ = 0;
};

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
class ReadBuffer : private NonCopyable {
 public:
  /// Gives the next batch, empty at the end. Called by the I/O thread, ahead of the consumer. What
  /// it throws reaches the consumer.
  using Source = std::function<std::optional<WantedBatch>()>;

  /// Starts the thread. Throws usage for a placement that is not possible.
  ReadBuffer(std::shared_ptr<Exchange> exchange, const ReadBufferOptions& options, Source source);
  /// Ends the thread, also in the middle of a fetch; waits at most 5 s for it, and logs when it has
  /// to be left behind.
  ~ReadBuffer();

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
