// Some ranks of the world that talk under a number of their own: what a communicator stands on, and
// each part of one that must not be disturbed by the others.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/net/mesh.hpp"
#include "comm/waiting.hpp"
#include "core/non_copyable.hpp"

namespace forebay::net {

/// Ranks are those of the group, but in messages of errors, which name those of the world. Local;
/// thread-safe as Mesh is.
class Group : private NonCopyable {
 public:
  /// `members`: ranks of the world. `number`: see Mesh::new_communicator().
  Group(std::shared_ptr<Mesh> mesh, std::vector<int> members, int rank, std::uint64_t number)
      : mesh_(std::move(mesh)), members_(std::move(members)), rank_(rank), number_(number) {}
  ~Group() { mesh_->end_communicator(number_); }

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  std::uint64_t number() const { return number_; }
  const std::shared_ptr<Mesh>& mesh() const { return mesh_; }
  int in_world(int rank) const { return members_[static_cast<std::size_t>(rank)]; }

  /// Numbers the operations: the same on all ranks, which start the same ones.
  std::uint64_t next_tag() { return ++tag_; }

  Sending start_send(int to, Channel channel, std::uint64_t tag, std::span<const std::byte> bytes,
                     std::shared_ptr<const void> owner = nullptr) {
    return mesh_->start_send(in_world(to), {number_, channel, tag}, bytes, std::move(owner));
  }
  Receiving receive(int from, Channel channel, std::uint64_t tag, std::span<std::byte> to,
                    bool wakes = true) {
    return {*mesh_, in_world(from), {number_, channel, tag}, to, wakes};
  }
  std::optional<std::vector<std::byte>> take(int from, Channel channel) {
    return mesh_->take(in_world(from), {number_, channel, 0});
  }
  /// Throws communication where a rank of the group is gone.
  void check() { mesh_->mailbox().check(members_); }

  /// Sleeps until `ready()`. Throws as Mailbox::wait(), and where a rank of the group is gone.
  template <typename Ready>
  void wait(const WaitPolicy& policy, const std::string& what, Ready ready) {
    mesh_->require_own_process();
    mesh_->mailbox().wait(policy, what, [&] {
      if (ready()) return true;
      check();
      return false;
    });
  }

 private:
  std::shared_ptr<Mesh> mesh_;
  std::vector<int> members_;
  int rank_;
  std::uint64_t number_;
  std::atomic<std::uint64_t> tag_ = 0;
};

}  // namespace forebay::net
