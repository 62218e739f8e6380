// Connects one rank with all others: it calls those below it, and is called by those above.
//
//   rank i --- connect, handshake ---> rank j < i
//
// All of it goes on at once, in one loop over poll(). Whoever calls gets a few seconds for its
// handshake; strangers, however many, hold nobody up: see handshake.hpp. A call that does not get
// through is repeated until all time is over.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/net/handshake.hpp"
#include "comm/net/socket.hpp"
#include "core/non_copyable.hpp"

namespace forebay::net {

class Connector : private NonCopyable {
 public:
  using Clock = std::chrono::steady_clock;
  struct Limits {
    Clock::time_point deadline;                 ///< for all of it
    std::chrono::milliseconds handshake{5000};  ///< for one
    /// Called about twice a second; may throw to end the wait.
    std::function<void()> look = {};
  };

  /// `secret` outlives this object. `listener` is not needed by the last rank. `addresses`: of the
  /// ranks below this one.
  Connector(const JobSecret& secret, int rank, Descriptor listener, std::vector<Address> addresses,
            Limits limits);

  /// The connections, by rank. Throws communication, naming the ranks that have not come, and usage
  /// where two processes say that they are the same rank.
  std::vector<Descriptor> connect_all();

 private:
  struct Call {
    Descriptor socket;
    Handshake handshake;
    Clock::time_point until;
    bool connected = true;  ///< by TCP
  };
  struct Called {
    int rank = 0;
    std::optional<Call> call;
    Clock::time_point next_try;
    std::chrono::milliseconds pause{20};
  };

  bool complete() const { return missing_ == 0; }
  void accept_callers();
  void begin_calls();
  void wait();
  void serve_callers();
  void serve_calls();
  bool move(Call& call, bool& failed);
  void keep(int rank, Descriptor socket);
  void check_time();
  [[noreturn]] void fail_for_time() const;

  const JobSecret& secret_;
  int rank_;
  Descriptor listener_;
  std::vector<Address> addresses_;
  Limits limits_;
  std::vector<Descriptor> connections_;
  std::vector<bool> connected_;
  int missing_;
  int missing_callers_;
  std::list<Call> callers_;
  std::vector<Called> called_;
  Clock::time_point next_look_;
  std::string fault_;  ///< why the last call that failed did so
};

}  // namespace forebay::net
