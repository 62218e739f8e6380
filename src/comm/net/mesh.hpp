// The connections of one rank to all others, and the one thread that works on them.
//
//   any thread   start_send() --> queue of the connection --> sendmsg(), there and then
//   fb-net       what the connection did not take at once; and all that comes: epoll -> frames ->
//                mailbox, or memory that was posted for it, or an answer out of served memory
//
// Ranks are those of the world. All that is public is local and, but for the end of the object,
// thread-safe; a forked child gets a usage error.
//
// The end: each rank says farewell on all of its connections, behind whatever it has sent before,
// and the other side closes its half in return. A connection that ends without a farewell is a rank
// that is gone: whoever waits for it, or calls it later, gets an error that names it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/net/fork_guard.hpp"
#include "comm/net/frame.hpp"
#include "comm/net/mailbox.hpp"
#include "comm/net/send_queue.hpp"
#include "comm/net/socket.hpp"
#include "comm/waiting.hpp"
#include "core/non_copyable.hpp"
#include "core/placement.hpp"

namespace forebay::net {

class Mesh;

/// A frame that is being sent out of memory of the caller, which may not change until done(). At
/// the end of the object, what was not sent yet is copied, and sent all the same.
class Sending {
 public:
  Sending() = default;
  /// `kept`: somebody else keeps the memory.
  Sending(Mesh& mesh, int to, std::shared_ptr<Outgoing> frame, bool kept)
      : mesh_(&mesh), to_(to), frame_(std::move(frame)), kept_(kept) {}
  Sending(Sending&&) = default;
  Sending& operator=(Sending&&) = delete;
  ~Sending();

  bool done() const { return frame_ == nullptr || frame_->done.load(std::memory_order_acquire); }

 private:
  Mesh* mesh_ = nullptr;
  int to_ = 0;
  std::shared_ptr<Outgoing> frame_;
  bool kept_ = false;
};

/// Memory that waits for a frame. Nothing is written into it after the end of the object.
class Receiving {
 public:
  Receiving() = default;
  /// `wakes`: whether to wake at once who waits when it is filled.
  Receiving(Mesh& mesh, int from, const Port& port, std::span<std::byte> to, bool wakes = true);
  Receiving(Receiving&&) = default;
  Receiving& operator=(Receiving&&) = delete;
  ~Receiving();

  /// Throws communication when the rank sends something else, or nothing any more.
  bool done() const;
  int from() const { return posted_->source; }

 private:
  Mesh* mesh_ = nullptr;
  std::unique_ptr<Posted> posted_;
};

class Mesh : private NonCopyable {
 public:
  /// `connections`: by rank, authenticated; that of `rank` is not used. Throws as HelperThread.
  static std::shared_ptr<Mesh> make(int rank, std::vector<Descriptor> connections,
                                    const Placement& placement);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peers_.size()); }

  /// A number for a communicator that no other rank and no later call gives.
  std::uint64_t new_communicator();
  /// Nothing of it is received any more.
  void end_communicator(std::uint64_t communicator);

  /// `owner`: whoever keeps `bytes`; may be null, see Sending. Throws communication for a rank that
  /// is gone; what goes to one that has ended is dropped.
  Sending start_send(int to, const Port& port, std::span<const std::byte> bytes,
                     std::shared_ptr<const void> owner = nullptr);
  /// Copies what cannot be sent at once.
  void send(int to, const Port& port, std::span<const std::byte> bytes) {
    start_send(to, port, bytes);
  }
  /// The oldest frame that has come. Throws communication where there is none and the rank is gone.
  std::optional<std::vector<std::byte>> take(int from, const Port& port);
  std::optional<std::vector<std::byte>> take_notice(std::uint64_t communicator);

  /// Answers read requests for `communicator` out of `memory` from now on: lists of ReadPlace, for
  /// each of which one frame of the same tag goes back; an empty one where it is not in the memory.
  struct ReadPlace {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  void serve(std::uint64_t communicator, ServedMemory memory);

  Mailbox& mailbox() { return mailbox_; }
  /// Throws usage in a forked child.
  void require_own_process() const;
  bool in_child() const { return fork_guard_.in_child(); }

 private:
  friend class Sending;
  friend class Receiving;
  struct Peer;

  Mesh(int rank, std::vector<Descriptor> connections);
  ~Mesh();
  void start(const Placement& placement);

  Peer& peer(int rank) { return *peers_[static_cast<std::size_t>(rank)]; }
  void deliver_here(const Port& port, std::span<const std::byte> bytes);
  void push(Peer& peer, std::shared_ptr<Outgoing> frame);
  void flush(Peer& peer);
  void finish_copying(int to, Outgoing& frame);
  void post(Posted& posted);
  void withdraw(Posted& posted);

  void run(const std::stop_token& stop);
  void receive(Peer& peer);
  void answer(Peer& peer, const FrameHeader& header, std::span<const std::byte> request);
  void hear_farewell(Peer& peer);
  void lose(Peer& peer, const std::string& how);
  void watch(Peer& peer, bool output);
  void say_farewell();

  int rank_;
  Mailbox mailbox_;
  Descriptor epoll_;
  Descriptor wake_;
  std::vector<std::unique_ptr<Peer>> peers_;
  ForkGuard fork_guard_;
  std::atomic<std::uint64_t> made_ = 0;
  std::atomic<int> open_ = 0;  ///< connections that have not ended
  HelperThread thread_;
};

}  // namespace forebay::net
