// What fails on one rank, fails on all: the failure board as one who is polled by the progress
// thread uses it.
//
//   a turn of the thread   look at the board now and then, do what is to be done
//   whatever it throws     goes on the board; the first failure of all ranks is what counts
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "comm/failure_board.hpp"

namespace forebay {

class CommonFailure {
 public:
  /// Collective; see FailureBoard.
  CommonFailure(std::shared_ptr<Communicator> comm, std::shared_ptr<Communicator> node);

  /// For any thread: all ranks' next turns fail.
  void fail(const Error& error) { board_.fail(error); }

  /// Of the progress thread: one turn. Returns the first failure of all ranks, this one's or
  /// another's, once there is one. `what`: for what is thrown other than an Error.
  std::optional<Error> turn(std::string_view what, const std::function<void()>& work);

  /// Whether an exception that was not there when this was made unwinds the stack of the caller.
  bool unwinding() const;

 private:
  void look();
  Error first(const Error& mine);

  FailureBoard board_;
  const int exceptions_;  ///< that unwound the stack when this was made
  std::int64_t next_look_ns_ = 0;
};

}  // namespace forebay
