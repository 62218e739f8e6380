// What ranks tell each other at the rendezvous before they are connected.
//
//   rank 0      start: a nonce, and the key that all connections are authenticated with
//   each rank   node.R: its node, and the address under which other nodes could reach it
//   rank 0      layout: whether all are on one node; else addresses on two nodes
//   each rank   address.R: where it listens
//   rank 0      addresses.I: all of them, in blocks
//
// All names but the first hold the nonce, so that nothing which an earlier start has left behind is
// taken for a part of this one. Whoever has read an old `start` finds the new one while it waits
// for what comes next, and begins anew. A rank that fails leaves its error, for all others to
// throw.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "comm/net/handshake.hpp"
#include "comm/net/socket.hpp"
#include "core/non_copyable.hpp"
#include "forebay/connect.hpp"
#include "forebay/error.hpp"

namespace forebay::net {

class Meeting : private NonCopyable {
 public:
  Meeting(Rendezvous& rendezvous, const ConnectOptions& options);

  /// There is another start than the one that this rank has read.
  struct StartedAnew {};

  // In this order, by all ranks. All throw communication, naming ranks that do not come, usage for
  // ranks that do not fit together, whatever another rank has failed with, and StartedAnew.

  JobSecret begin();
  /// Where to listen.
  Address find_address();
  /// Leaves where this rank listens; returns where those below it do.
  std::vector<Address> share_address(const Address& mine);

  /// A look for what ends the wait of all: another rank's failure, a second process of this rank.
  void look();
  /// Lets the others fail with it, as far as the rendezvous can be reached.
  void fail(const Error& error) noexcept;
  /// All are connected: nothing of it is needed any more.
  void clean_up() noexcept;

  std::chrono::steady_clock::time_point deadline() const { return deadline_; }
  std::chrono::milliseconds left() const;

 private:
  using Value = std::vector<std::byte>;

  std::string key(const std::string& what) const;
  std::string key(const char* what, int number) const;
  void leave(const std::string& key, std::span<const std::byte> value);
  Value await(const std::string& key, const std::string& from);
  std::vector<Value> await_all(const char* what);
  std::string candidate() const;
  void check_start(const Value& value) const;

  Rendezvous& rendezvous_;
  const ConnectOptions& options_;
  std::chrono::steady_clock::time_point deadline_;
  std::string job_;
  Value start_;
  Value node_;
  std::string nonce_;
  std::vector<std::string> left_;  ///< keys under which this rank has left something
};

}  // namespace forebay::net
