// NonblockingCollectives over TCP. What has to be sent first leaves when an operation starts; what
// depends on others leaves when done() finds that it has come. Frames go straight from and to the
// memory of the operation.
//
//   all_reduce   each rank adds up one block, in the order of ranks, piece by piece as they come,
//                and sends each piece of the sum to all: two messages one after the other, whatever
//                the number of ranks
//   broadcast    a binomial tree, in pieces
//   all_gather, all_to_all    each rank to each other
//   barrier      dissemination
//
// An operation that is given up takes back the memory that it receives into; what it sends it holds
// on to until it is sent.
#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "comm/messages.hpp"
#include "comm/net/collectives.hpp"
#include "comm/net/group.hpp"
#include "comm/net/net_communicator.hpp"
#include "comm/nonblocking.hpp"
#include "core/copy_values.hpp"

namespace forebay::net {
namespace {

// Of a sum: short enough to add one while others are under way.
constexpr std::size_t kSumPiece = std::size_t{256} << 10;

/// What all operations do.
class NetOperation : public StartedOperation {
 public:
  explicit NetOperation(std::shared_ptr<Group> group)
      : group_(std::move(group)), tag_(group_->next_tag()) {}

  bool done() final {
    if (done_) return true;
    if (!advance() || !all_sent()) {
      group_->check();
      return false;
    }
    done_ = true;
    end();
    return true;
  }

 protected:
  /// Does what can be done now; tells whether all has come.
  virtual bool advance() = 0;
  virtual void end() {}

  Group& group() { return *group_; }
  std::size_t ranks() const { return static_cast<std::size_t>(group_->size()); }
  std::size_t me() const { return static_cast<std::size_t>(group_->rank()); }
  /// The rank that comes `step` after this one: each begins with another, so that none gets the
  /// messages of all at once.
  std::size_t after(std::size_t step) const { return (me() + step) % ranks(); }

  void send(std::size_t to, std::span<const std::byte> bytes, const std::shared_ptr<void>& owner) {
    in_pieces(bytes, kPiece, [&](std::span<const std::byte> piece) {
      sent_.push_back(
          group_->start_send(static_cast<int>(to), Channel::collective, tag_, piece, owner));
    });
  }
  /// The parts of what send() sends.
  void receive(std::size_t from, std::span<std::byte> to, std::deque<Receiving>& parts) {
    in_pieces(to, kPiece, [&](std::span<std::byte> piece) {
      parts.push_back(group_->receive(static_cast<int>(from), Channel::collective, tag_, piece));
    });
  }
  static bool all_here(std::deque<Receiving>& parts) {
    while (!parts.empty() && parts.front().done()) parts.pop_front();
    return parts.empty();
  }

 private:
  bool all_sent() {
    while (!sent_.empty() && sent_.front().done()) sent_.pop_front();
    return sent_.empty();
  }

  std::shared_ptr<Group> group_;
  std::uint64_t tag_;
  std::deque<Sending> sent_;
  bool done_ = false;
};

using SpareRoom = std::shared_ptr<SpareBuffers>;

class NetAllReduce final : public NetOperation {
 public:
  NetAllReduce(std::shared_ptr<Group> group, SpareRoom spare, SharedBytes values, TensorType type,
               Combination how)
      : NetOperation(std::move(group)),
        spare_(std::move(spare)),
        values_(std::move(values)),
        type_(type),
        how_(how) {
    const bool bits = how == Combination::bit_and || how == Combination::bit_or;
    element_ = bits ? 1 : size_of(type);
    require_countable(values_.bytes.size() / element_);
    if (ranks() == 1) return;
    const std::size_t mine = block(me()).size();
    room_ = spare_->take(mine * ranks());
    expect_terms(mine);
    send_terms();
    expect_sums();
  }

 private:
  /// The pieces of one block that come from all others.
  struct Piece {
    std::span<std::byte> sum;  ///< this rank's term, and then the sum
    std::deque<Receiving> terms;
    std::vector<const std::byte*> sources;
  };

  std::span<std::byte> block(std::size_t p) const {
    const auto [begin, end] = share_of(values_.bytes.size() / element_, p, ranks());
    return values_.bytes.subspan(begin * element_, (end - begin) * element_);
  }

  void expect_terms(std::size_t mine) {
    in_pieces(block(me()), kSumPiece, [&](std::span<std::byte> sum) {
      Piece& piece = pieces_.emplace_back();
      piece.sum = sum;
      const auto offset = static_cast<std::size_t>(sum.data() - block(me()).data());
      for (std::size_t p = 0; p < ranks(); ++p) {
        const auto term = std::span(room_).subspan(p * mine + offset, sum.size());
        piece.sources.push_back(p == me() ? sum.data() : term.data());
        if (p != me()) receive(p, term, piece.terms);
      }
    });
  }

  void send_terms() {
    for (std::size_t first = 0, longest = block(ranks() - 1).size(); first < longest;
         first += kSumPiece) {
      for (std::size_t step = 1; step < ranks(); ++step) {
        const auto theirs = block(after(step));
        if (first >= theirs.size()) continue;
        const auto bytes = std::min(kSumPiece, theirs.size() - first);
        send(after(step), theirs.subspan(first, bytes), values_.owner);
      }
    }
  }

  // Into the places of the terms that were sent: whoever sends a sum has had them.
  void expect_sums() {
    for (std::size_t step = 1; step < ranks(); ++step) {
      in_pieces(block(after(step)), kSumPiece,
                [&](std::span<std::byte> piece) { receive(after(step), piece, sums_); });
    }
  }

  bool advance() override {
    while (!pieces_.empty() && all_here(pieces_.front().terms)) {
      const Piece& piece = pieces_.front();
      combine_all(type_, how_, piece.sources, piece.sum);
      for (std::size_t step = 1; step < ranks(); ++step) {
        send(after(step), piece.sum, values_.owner);
      }
      pieces_.pop_front();
    }
    return pieces_.empty() && all_here(sums_);
  }
  void end() override { spare_->give_back(std::move(room_)); }

  SpareRoom spare_;
  SharedBytes values_;
  TensorType type_;
  Combination how_;
  std::size_t element_ = 1;
  SpareBuffers::Buffer room_;  ///< for the terms of the others; goes after who receives into it
  std::deque<Piece> pieces_;
  std::deque<Receiving> sums_;
};

class NetBroadcast final : public NetOperation {
 public:
  NetBroadcast(std::shared_ptr<Group> group, SharedBytes data, int root)
      : NetOperation(std::move(group)),
        data_(std::move(data)),
        tree_(tree_place(this->group().rank(), root, this->group().size())),
        left_(data_.bytes) {
    if (tree_.parent >= 0) receive(static_cast<std::size_t>(tree_.parent), data_.bytes, parts_);
  }

 private:
  bool advance() override {
    while (!left_.empty() && (tree_.parent < 0 || parts_.front().done())) {
      const auto piece = left_.first(std::min(kPiece, left_.size()));
      for (const int child : tree_.children) {
        send(static_cast<std::size_t>(child), piece, data_.owner);
      }
      left_ = left_.subspan(piece.size());
      if (tree_.parent >= 0) parts_.pop_front();
    }
    return left_.empty();
  }

  SharedBytes data_;
  TreePlace tree_;
  std::span<std::byte> left_;  ///< not here yet
  std::deque<Receiving> parts_;
};

/// Each rank to each other: what goes where is the one difference between two operations.
class NetSwap final : public NetOperation {
 public:
  /// Block p of `mine` goes to rank p; where `same`, all of it goes to each.
  NetSwap(std::shared_ptr<Group> group, SharedBytes mine, SharedBytes theirs, bool same)
      : NetOperation(std::move(group)), mine_(std::move(mine)), theirs_(std::move(theirs)) {
    const std::size_t block = theirs_.bytes.size() / ranks();
    const auto to_rank = [&](std::size_t p) {
      return same ? mine_.bytes : mine_.bytes.subspan(p * block, block);
    };
    const auto of_rank = [&](std::size_t p) { return theirs_.bytes.subspan(p * block, block); };
    for (std::size_t step = 1; step < ranks(); ++step) {
      receive(after(ranks() - step), of_rank(after(ranks() - step)), parts_);
    }
    for (std::size_t step = 1; step < ranks(); ++step) {
      send(after(step), to_rank(after(step)), mine_.owner);
    }
    if (to_rank(me()).data() != of_rank(me()).data()) copy_values(to_rank(me()), of_rank(me()));
  }

 private:
  bool advance() override { return all_here(parts_); }

  SharedBytes mine_;
  SharedBytes theirs_;
  std::deque<Receiving> parts_;
};

class NetBarrier final : public NetOperation {
 public:
  explicit NetBarrier(std::shared_ptr<Group> group) : NetOperation(std::move(group)) { signal(); }

 private:
  static constexpr std::byte kSign{1};

  void signal() {
    if (step_ >= ranks()) return;
    send(after(step_), std::span(&kSign, 1), nullptr);
    receive(after(ranks() - step_), heard_, part_);
  }
  bool advance() override {
    while (step_ < ranks() && all_here(part_)) {
      step_ *= 2;
      signal();
    }
    return step_ >= ranks();
  }

  std::size_t step_ = 1;
  std::array<std::byte, 1> heard_{};
  std::deque<Receiving> part_;
};

class NetNonblocking final : public NonblockingCollectives {
 public:
  explicit NetNonblocking(std::shared_ptr<Group> group) : group_(std::move(group)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  Operation all_reduce(SharedBytes values, TensorType type, Combination how) override {
    return std::make_unique<NetAllReduce>(group_, spare_, std::move(values), type, how);
  }
  Operation broadcast(SharedBytes data, int root) override {
    return std::make_unique<NetBroadcast>(group_, std::move(data), root);
  }
  Operation all_gather(SharedBytes mine, SharedBytes all) override {
    require_gatherable(mine.bytes.size(), all.bytes.size(), size());
    return std::make_unique<NetSwap>(group_, std::move(mine), std::move(all), true);
  }
  Operation all_to_all(SharedBytes mine, SharedBytes theirs) override {
    require_exchangeable(mine.bytes.size(), theirs.bytes.size(), size());
    return std::make_unique<NetSwap>(group_, std::move(mine), std::move(theirs), false);
  }
  Operation barrier() override { return std::make_unique<NetBarrier>(group_); }

 private:
  std::shared_ptr<Group> group_;
  SpareRoom spare_ = std::make_shared<SpareBuffers>();
};

}  // namespace

std::unique_ptr<NonblockingCollectives> net_nonblocking(std::shared_ptr<Group> group) {
  return std::make_unique<NetNonblocking>(std::move(group));
}

}  // namespace forebay::net
