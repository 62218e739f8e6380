// A proxy: adds up what those below it push, clock by clock, and hands it on; hands what comes down
// to all of them (paper 002, 8.4.2: "locally reduces ... and forwards the accumulated results").
#pragma once

#include <cstdint>
#include <vector>

#include "sync/servers/clocked_sum.hpp"
#include "sync/servers/server_mail.hpp"

namespace forebay {

/// Of the progress thread.
class Proxy {
 public:
  /// `parameters` and, behind them, `told` numbers in each push.
  Proxy(Station station, const Links& links, std::size_t parameters, std::size_t told,
        ServerMail& mail, const ServerTree& tree);

  /// Throws communication for what does not belong here.
  void take(ServerLetter letter);

 private:
  void hand_up();
  void hand_down(const ServerLetter& letter);

  const Station station_;
  const std::vector<Address> children_;
  const std::size_t parameters_;
  const std::size_t shards_;
  ServerMail& mail_;
  Upstream upstream_;
  ClockedSum sums_;
  std::uint64_t clock_ = 0;   ///< of the next sum
  std::uint64_t wanted_ = 0;  ///< the highest version that was asked for
  std::size_t last_ = 0;      ///< shards whose last parameters have come
};

}  // namespace forebay
