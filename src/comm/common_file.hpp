// A file that several ranks have open together, for MPI-IO.
//
// Made by Communicator::open_together(). On MPI it is an MPI_File; other communicators imitate it
// by plain reads, so that what stands on it can be tried with ranks as threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/non_copyable.hpp"
#include "forebay/communicator.hpp"

namespace forebay {

/// Fills `into` whole from `offset`.
struct FilePiece {
  std::uint64_t offset = 0;
  std::span<std::byte> into;
};

/// Destruction: all ranks at about the same time, or the file stays open until the process ends.
class CommonFile : private NonCopyable {
 public:
  virtual ~CommonFile() = default;

  /// Reads the pieces of all ranks at once: any number of them, of any length, also none, none
  /// overlapping another one of its rank. Collective, and nothing ends the wait for a rank that
  /// does not come: see CommonSteps. Throws io on the rank that MPI tells of it. Whether the file
  /// was long enough MPI does not tell: compare its size afterwards.
  virtual void read_all(std::span<const FilePiece> pieces) = 0;
  /// Reads as many bytes as there are. Local; by any number of threads where concurrent(). Not
  /// once read_all() was called, which changes what MPI shows of the file.
  virtual std::uint64_t read(std::uint64_t offset, std::span<std::byte> into) = 0;
  /// By what the bytes come, in words.
  virtual std::string describe() const = 0;
};

// Steps that all ranks take, or none of them: the gate in front of calls that nothing can end.
//
//   rank r > 0    ready --->                      ready --->  (leave --->)
//   rank 0                  all are ready: go --> everybody   one has left: never --> everybody
//
// A collective call of MPI-IO waits for ever for a rank that does not come. So each rank first says
// that it is ready, and rank 0 decides. Whoever has said so is bound to take the step if the answer
// is "go", even if it would rather leave by now; it says that it leaves, and the answer is then
// "never" unless "go" was decided before. Messages between two ranks arrive in order, so all hear
// the same. After the first "never" there are no more steps.

class CommonSteps {
 public:
  /// `comm` belongs to this object alone. Collective. All ranks end their object at about the same
  /// time.
  explicit CommonSteps(std::shared_ptr<Communicator> comm);

  /// Waits until all ranks are at this step; false when one has left, or this one, as `give_up`
  /// said: then nobody takes the step. How long others compute before they come is theirs to
  /// decide, so there is no other deadline. One thread at a time.
  bool meet(const GiveUp& give_up);
  /// This rank takes no more steps. Idempotent, thread-safe.
  void leave();
  /// Hears what others say; tells whether there was something. Called again and again by a thread
  /// of rank 0, the others need not wait for what that rank is doing. Thread-safe.
  bool serve();

 private:
  enum class Word : std::uint8_t { ready, leave, go, never };

  void say(int to, Word word);
  void say_to_all(Word word);
  void hear(int from, Word word);
  void decide();
  void end();
  /// Whether step `mine_` was decided, and how.
  bool decided(bool& go);

  std::shared_ptr<Communicator> comm_;
  std::mutex mutex_;
  std::vector<std::uint64_t> ready_;  ///< on rank 0: steps that each rank was ready for
  std::uint64_t mine_ = 0;            ///< steps that this rank was ready for
  std::uint64_t taken_ = 0;           ///< steps that were decided on
  bool ended_ = false;
  bool left_ = false;
};

}  // namespace forebay
