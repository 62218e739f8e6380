// The stations of parameter servers: sums that wait for all, proxies, and servers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "sync/servers/server_tree.hpp"

namespace forebay {

// Sums over those below a station, clock by clock, in their order: the same numbers however they
// came.
//
//   child 0   | 3 | 4 |              -> next() gives 3, the sum of three letters, and then nothing:
//   child 1   | 3 |                     child 1 has not given 4 yet
//   child 2   | 3 | 4 | left |          (a child that has left is not waited for)

/// Of one thread.
class ClockedSum {
 public:
  /// `length` numbers in each letter.
  ClockedSum(std::vector<Address> children, std::size_t length);

  /// Throws communication for a letter of another length, or of who is no child.
  void add(ServerLetter letter);
  void leave(const Address& child);
  /// The numbers of the next clock, once all have given theirs; valid until the next call.
  std::optional<std::span<const float>> next();
  bool all_left() const;
  /// Nobody has left.
  void begin_again();

 private:
  struct Child {
    Address address;
    std::deque<ServerLetter> letters;
    bool left = false;
  };

  Child& find(const Address& address);

  std::vector<Child> children_;
  std::size_t length_;
  std::optional<ServerLetter> sum_;
};

/// Where `child` stands among `children`. Throws communication for who is none of them.
std::size_t find_child(std::span<const Address> children, const Address& child);
/// Throws communication unless the letter has so many numbers.
void require_length(const ServerLetter& letter, std::size_t length);

// A proxy: adds up what those below it push, clock by clock, and hands it on; hands what comes down
// to all of them (paper 002, 8.4.2: "locally reduces ... and forwards the accumulated results").

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

// A server: keeps a shard of the parameters, updates it with what is pushed, and answers.
//
//   staleness 0   waits for all at a clock, updates once with their sum, answers all
//   n > 0         updates with each push as it comes; version = the lowest clock of those who have
//                 not left; answers a push of clock c when there is version c + 1 - n, at once if
//                 nobody is far behind; whoever then needs newer parameters asks for them
//
// When all have left, it answers all of them a last time, and clocks go on from the highest.

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

/// The proxies and the server of one rank. Of the progress thread.
class Stations {
 public:
  /// `parameters` of all shards, and `told`, to begin with. References outlive it.
  Stations(int rank, std::span<const float> parameters, std::span<const float> told,
           UpdateRule rule, std::uint64_t staleness, ServerMail& mail, const ServerTree& tree);

  /// A letter for any of them. Throws communication when it is for nobody here, and as they do.
  void take(ServerLetter letter);
  std::uint64_t updates() const { return server_ ? server_->updates() : 0; }

 private:
  std::map<Station, Proxy> proxies_;
  std::optional<Server> server_;
};

}  // namespace forebay
