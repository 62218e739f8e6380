// Roots as the peers of a format (format/peers.hpp), over communicators.
#pragma once

#include <memory>
#include <string>

#include "forebay/communicator.hpp"
#include "format/peers.hpp"

namespace forebay {

class RootPeers final : public Peers {
 public:
  /// `roots` are all roots, `of_node` those among them that share memory; both carry nothing else.
  RootPeers(std::shared_ptr<Communicator> roots, std::shared_ptr<Communicator> of_node)
      : roots_(std::move(roots)), of_node_(std::move(of_node)) {}

  int rank() const override { return roots_->rank(); }
  int size() const override { return roots_->size(); }
  void together(const std::function<void()>& step) override { collectively(*roots_, step); }
  std::string told_by(int from, const std::string& bytes) override {
    return broadcast_text(*roots_, bytes, from);
  }
  PeerMemory share(std::uint64_t bytes) override;

 private:
  std::shared_ptr<Communicator> roots_;
  std::shared_ptr<Communicator> of_node_;
};

}  // namespace forebay
