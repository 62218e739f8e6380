// The thread that moves what a rank has read into its share of the memory of all ranks:
//
//   reading thread:  |window 0|window 1|window 2| ...                      the stage
//   this thread:      agree | move w 0 | move w 1 | .. | open | begin | agree | ...
//                                                        all ranks together
//
// Before each filling the ranks agree on whether there is one: some may have more to load in an
// epoch than others (they fill in nothing then), and a run may end early. A rank that wants no more
// goes on filling for the others, until all ranks want no more.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "comm/failure_board.hpp"
#include "core/non_copyable.hpp"
#include "core/placement.hpp"
#include "exchange/exchange.hpp"
#include "forebay/trace.hpp"
#include "loader/opened_loads.hpp"
#include "read/stage.hpp"

namespace forebay {

/// How long others compute is theirs to decide: waits for them end with a failure, or with the
/// death of a rank, which ends up on the board.
inline constexpr std::chrono::hours kForever{24 * 365};

struct ShareFillerParts {
  std::string path;
  std::shared_ptr<Communicator> comm;      ///< of this thread alone
  std::shared_ptr<Communicator> farewell;  ///< of leave() alone, for messages
  std::shared_ptr<FailureBoard> board;
  std::shared_ptr<Exchange> exchange;
  std::shared_ptr<Stage> stage;  ///< of this rank alone
  std::shared_ptr<LoadList> list;
  std::shared_ptr<OpenedLoads> loads;  ///< is told of each filling
  /// Whether the next filling may be read while the present one is used.
  bool ahead = true;
  Placement placement;
  Trace* trace = nullptr;  ///< not touched any more after leave()
};

/// Local but for the constructor, as its thread works with those of all other ranks.
class ShareFiller : private NonCopyable {
 public:
  /// Starts the thread. Where `here`, does all of its work in this call instead, and throws what
  /// fails on any rank.
  ShareFiller(ShareFillerParts parts, bool here);

  /// This rank fetches nothing more. Thread-safe.
  void reads_are_done();
  /// The same, and ends the thread as soon as all other ranks have said either. Tells whether they
  /// did so within `limit`; if not, the thread goes on. When all ranks are in this call, the
  /// filling that is under way is not completed: nobody reads it.
  bool leave(std::chrono::milliseconds limit);
  /// For when a failure has been published: waits at most `limit`, and leaves the thread behind if
  /// that was not enough.
  void abandon(std::chrono::milliseconds limit);

  /// Samples that were moved into the share.
  std::uint64_t samples() const;
  /// How long the thread has waited for the other ranks so far: for those that still load, or use
  /// what is to be replaced.
  std::int64_t waited_ns() const;

 private:
  class Work;

  void say_farewell();
  void hear_farewells();

  std::shared_ptr<Work> work_;
  std::shared_ptr<Communicator> farewell_;
  std::vector<bool> left_;  ///< on rank 0: who is in leave()
  HelperThread thread_;
};

}  // namespace forebay
