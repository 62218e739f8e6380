// How two ranks convince each other that they belong to the same job, before anything else is read
// from the connection between them.
//
//   listener                                                        connector
//     |  --- challenge: "FBNETv1\0", nonce L ------------------------> |      24 bytes
//     |  <-- answer: rank, rank that is called, nonce C, MAC --------- |      40 bytes
//     |  --- welcome: verdict, MAC ----------------------------------> |      24 bytes
//
//   MAC = SipHash of (who speaks, version, both ranks, number of ranks, verdict, digest of the
//   job's name, L, C), by a key that rank 0 has drawn and left at the rendezvous
//
// All lengths are fixed: a stranger is sent away after 40 bytes, or when its time is over. What
// comes later on the connection is neither signed nor hidden, as with MPI and Gloo.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/net/siphash.hpp"

namespace forebay::net {

/// What all ranks of a job know.
struct JobSecret {
  Bytes16 key{};
  Bytes16 job{};  ///< digest of its name
  int ranks = 1;

  static JobSecret make(const Bytes16& key, const std::string& job, int ranks);
};

enum class Verdict : std::uint8_t {
  unknown,    ///< none yet
  welcome,    ///< both sides are ranks of this job
  stranger,   ///< what has come is not from a rank of this job
  duplicate,  ///< of a rank that is connected already: two processes say that they are the same one
};

/// One side of it, as a state machine that moves no bytes itself: the owner sends what is to be
/// sent, and hands in what has come. Never throws. Not synchronized.
class Handshake {
 public:
  /// `connected`: which ranks the listener has already; outlives this object.
  static Handshake listen(const JobSecret& secret, int rank, const Bytes16& nonce,
                          const std::vector<bool>& connected);
  static Handshake connect(const JobSecret& secret, int rank, int to, const Bytes16& nonce);

  /// What is still to be sent; sent() tells how much of it was.
  std::span<const std::byte> to_send() const {
    return std::span(out_).subspan(out_done_, out_size_ - out_done_);
  }
  void sent(std::size_t bytes) { out_done_ += bytes; }
  /// How many bytes are awaited now; 0: none.
  std::size_t wants() const { return in_size_ - in_done_; }
  /// At most wants() bytes that have come.
  void received(std::span<const std::byte> bytes);

  /// Known before the last bytes are sent: see over().
  Verdict verdict() const { return verdict_; }
  bool over() const { return verdict_ != Verdict::unknown && to_send().empty(); }
  /// The other rank, once the verdict is `welcome` or `duplicate`.
  int other() const { return other_; }

 private:
  static constexpr std::size_t kMost = 40;

  Handshake(const JobSecret& secret, int rank, const Bytes16& nonce)
      : secret_(&secret), rank_(rank), mine_(nonce) {}

  void say(std::span<const std::byte> text);
  void await(std::size_t bytes);
  void take_challenge();
  void take_answer();
  void take_welcome();
  Bytes16 mac(bool of_listener, Verdict verdict) const;

  const JobSecret* secret_;
  int rank_;
  Bytes16 mine_;
  Bytes16 theirs_{};
  bool listens_ = false;
  const std::vector<bool>* connected_ = nullptr;
  int other_ = -1;
  Verdict verdict_ = Verdict::unknown;
  std::array<std::byte, kMost> out_{};
  std::size_t out_size_ = 0;
  std::size_t out_done_ = 0;
  std::array<std::byte, kMost> in_{};
  std::size_t in_size_ = 0;
  std::size_t in_done_ = 0;
};

}  // namespace forebay::net
