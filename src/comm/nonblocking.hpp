// Collective operations that are started, and asked about until they are done: nothing here waits.
//
//   start (every rank, in the same order)  ->  done()? no ... done()? no ... done()? yes
//
// Neither MPI library moves anything between calls, so whoever starts an operation has to ask for
// its end again and again: that is what the progress thread does. Several may be on their way.
//
// An operation that is given up (destroyed before it is done) cannot be taken back: MPI goes on
// reading and writing its memory. So each holds on to an owner of its memory, and leaks it then.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/combine.hpp"
#include "core/non_copyable.hpp"

namespace forebay {

class StartedOperation : private NonCopyable {
 public:
  virtual ~StartedOperation() = default;

  /// Moves the operation on; never waits. Throws communication. True from then on.
  virtual bool done() = 0;
};

/// Memory that one operation works on, with whoever keeps it alive.
struct SharedBytes {
  std::shared_ptr<void> owner;
  std::span<std::byte> bytes;
};

/// Made by Communicator::nonblocking(), on a communicator of its own. Of one thread at a time,
/// which may be a helper thread where Communicator::concurrent(). Every rank starts the same
/// operations in the same order. Sizes up to 2 GiB - 1 elements an operation.
class NonblockingCollectives : private NonCopyable {
 public:
  using Operation = std::unique_ptr<StartedOperation>;

  virtual ~NonblockingCollectives() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// In place. Bit operations work on whole bytes; `type` is then not looked at. Ranks get the same
  /// result; sums of floats may differ in their last bits from run to run.
  virtual Operation all_reduce(SharedBytes values, TensorType type, Combination how) = 0;
  virtual Operation broadcast(SharedBytes data, int root) = 0;
  /// `all` is size() times as long as `mine`, ordered by rank; `mine` may be this rank's part of
  /// it.
  virtual Operation all_gather(SharedBytes mine, SharedBytes all) = 0;
  /// Block p of `mine` goes to rank p; block p of `theirs` is what rank p had for this one. Blocks
  /// are equally long.
  virtual Operation all_to_all(SharedBytes mine, SharedBytes theirs) = 0;
  virtual Operation barrier() = 0;
};

// For implementations: what both kinds require of their callers. Throw usage.

void require_gatherable(std::size_t mine, std::size_t all, int ranks);
void require_exchangeable(std::size_t mine, std::size_t theirs, int ranks);
/// `elements` as a count of MPI.
int require_countable(std::size_t elements);

}  // namespace forebay
