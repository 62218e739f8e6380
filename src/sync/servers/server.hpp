// A server: keeps a shard of the parameters, updates it with what is pushed, and answers.
//
//   staleness 0   waits for all at a clock, updates once with their sum, answers all
//   n > 0         updates with each push as it comes; version = the lowest clock of those who have
//                 not left; answers a push of clock c when there is version c + 1 - n, at once if
//                 nobody is far behind; whoever then needs newer parameters asks for them
//
// When all have left, it answers all of them a last time, and clocks go on from the highest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sync/servers/clocked_sum.hpp"
#include "sync/servers/server_mail.hpp"

namespace forebay {

/// Of the progress thread.
class Server {
 public:
  /// `parameters` of the shard, and `told`, to begin with.
  Server(const ParameterShard& shard, std::size_t number, const Links& links,
         std::vector<float> parameters, std::vector<float> told, UpdateRule rule,
         std::uint64_t staleness, ServerMail& mail);

  /// Throws communication for what does not belong here, and what the rule throws.
  void take(ServerLetter letter);
  std::uint64_t updates() const { return updates_; }

 private:
  struct Child {
    Address address;
    std::uint64_t clock = 0;   ///< pushes
    std::uint64_t wanted = 0;  ///< version
    bool waits = false;
    bool left = false;
  };

  void take_push(ServerLetter letter);
  void update_complete();
  void update(std::span<const float> numbers, std::uint64_t clock);
  std::uint64_t version() const;
  void answer();
  void end();
  void send(const Address& child, ServerLetterKind kind, std::uint64_t clock);
  Child& find(const Address& address);

  const ParameterShard shard_;
  const std::size_t number_;
  const std::uint64_t staleness_;
  const UpdateRule rule_;
  ServerMail& mail_;
  std::vector<float> parameters_;
  std::vector<float> told_;
  std::vector<Address> addresses_;
  std::vector<Child> children_;
  ClockedSum sums_;            ///< staleness 0
  std::uint64_t summed_ = 0;   ///< clocks in the parameters, with staleness 0
  std::uint64_t updates_ = 0;  ///< since the beginning
};

}  // namespace forebay
