#include "comm/net/collectives.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>

#include "comm/messages.hpp"
#include "core/combine.hpp"
#include "core/copy_values.hpp"

namespace forebay::net {
namespace {

constexpr auto kChannel = Channel::collective;
// Below that, two rounds of many messages cost more than adding everything everywhere.
constexpr std::size_t kFewBytes = 4096;

/// One collective call of this rank.
class Call {
 public:
  Call(Group& group, const WaitPolicy& policy, const char* what)
      : group_(group), policy_(policy), what_(what), tag_(group.next_tag()) {}

  /// `bytes` must stay as they are until finish().
  void send(int to, std::span<const std::byte> bytes) {
    sent_.push_back(group_.start_send(to, kChannel, tag_, bytes));
  }
  void receive(int from, std::span<std::byte> to) {
    const Receiving part = expect(from, to);
    wait(part);
  }
  Receiving expect(int from, std::span<std::byte> to) {
    return group_.receive(from, kChannel, tag_, to);
  }
  void wait(const Receiving& part) {
    group_.wait(policy_, what_, [&] { return part.done(); });
  }
  /// Waits until all is sent.
  void finish() {
    for (const Sending& part : sent_) {
      group_.wait(policy_, what_, [&] { return part.done(); });
    }
    sent_.clear();
  }

 private:
  Group& group_;
  const WaitPolicy& policy_;
  const char* what_;
  std::uint64_t tag_;
  std::deque<Sending> sent_;
};

void add_all(Group& group, const WaitPolicy& policy, std::span<float> values) {
  std::vector<float> all(values.size() * static_cast<std::size_t>(group.size()));
  all_gather(group, policy, std::as_bytes(values), std::as_writable_bytes(std::span(all)));
  std::vector<const std::byte*> sources;
  for (std::size_t first = 0; first < all.size(); first += values.size()) {
    sources.push_back(std::as_bytes(std::span(all).subspan(first)).data());
  }
  combine_all(TensorType::float32, Combination::sum, sources, std::as_writable_bytes(values));
}

/// What comes from each rank for one block goes to memory of its own.
void add_blocks(Group& group, const WaitPolicy& policy, std::span<float> values) {
  Call call(group, policy, "summing with the other ranks");
  const int ranks = group.size();
  const int me = group.rank();
  const auto block = [&](int p) {
    const auto [begin, end] =
        share_of(values.size(), static_cast<std::size_t>(p), static_cast<std::size_t>(ranks));
    return std::as_writable_bytes(values.subspan(begin, end - begin));
  };
  const auto mine = block(me);
  std::vector<std::byte> others(mine.size() * static_cast<std::size_t>(ranks));
  std::vector<const std::byte*> terms;
  std::deque<Receiving> parts;
  for (int p = 0; p < ranks; ++p) {
    const auto room =
        std::span(others).subspan(static_cast<std::size_t>(p) * mine.size(), mine.size());
    terms.push_back(p == me ? mine.data() : room.data());
    if (p != me) parts.push_back(call.expect(p, room));
  }
  for (int step = 1; step < ranks; ++step)
    call.send((me + step) % ranks, block((me + step) % ranks));
  for (const Receiving& part : parts) call.wait(part);
  combine_all(TensorType::float32, Combination::sum, terms, mine);
  // Whoever sends a sum has all terms for it: this rank's block there is not read any more.
  std::deque<Receiving> sums;
  for (int p = 0; p < ranks; ++p) {
    if (p != me) sums.push_back(call.expect(p, block(p)));
  }
  for (int step = 1; step < ranks; ++step) call.send((me + step) % ranks, mine);
  for (const Receiving& sum : sums) call.wait(sum);
  call.finish();
}

}  // namespace

TreePlace tree_place(int rank, int root, int ranks) {
  const int place = (rank - root + ranks) % ranks;
  TreePlace tree;
  int step = 1;
  while (step < ranks && (place & step) == 0) step <<= 1;
  if (place != 0) tree.parent = (place - step + root) % ranks;
  for (step >>= 1; step > 0; step >>= 1) {
    if (place + step < ranks) tree.children.push_back((place + step + root) % ranks);
  }
  return tree;
}

void barrier(Group& group, const WaitPolicy& policy) {
  Call call(group, policy, "a barrier with the other ranks");
  const int ranks = group.size();
  for (int step = 1; step < ranks; step <<= 1) {
    call.send((group.rank() + step) % ranks, {});
    call.receive((group.rank() - step + ranks) % ranks, {});
  }
  call.finish();
}

void broadcast(Group& group, const WaitPolicy& policy, std::span<std::byte> data, int root) {
  Call call(group, policy, "a broadcast with the other ranks");
  const TreePlace tree = tree_place(group.rank(), root, group.size());
  std::deque<Receiving> parts;
  if (tree.parent >= 0) {
    in_pieces(data, kPiece, [&](std::span<std::byte> piece) {
      parts.push_back(call.expect(tree.parent, piece));
    });
  }
  std::size_t number = 0;
  in_pieces(data, kPiece, [&](std::span<std::byte> piece) {
    if (tree.parent >= 0) call.wait(parts[number++]);
    for (const int child : tree.children) call.send(child, piece);
  });
  call.finish();
}

// Block i of `room` is that of the i-th rank after this one.
void all_gather(Group& group, const WaitPolicy& policy, std::span<const std::byte> mine,
                std::span<std::byte> all) {
  Call call(group, policy, "gathering with the other ranks");
  const std::size_t block = mine.size();
  const int ranks = group.size();
  std::vector<std::byte> room(block * static_cast<std::size_t>(ranks));
  copy_values(mine, room);
  for (int have = 1; have < ranks; have *= 2) {
    const int more = std::min(have, ranks - have);
    const std::size_t bytes = static_cast<std::size_t>(more) * block;
    const auto next = std::span(room).subspan(static_cast<std::size_t>(have) * block, bytes);
    const int from = (group.rank() + have) % ranks;
    const int to = (group.rank() - have + ranks) % ranks;
    in_pieces(std::span(room).first(bytes), kLongestFrame,
              [&](std::span<std::byte> piece) { call.send(to, piece); });
    in_pieces(next, kLongestFrame, [&](std::span<std::byte> piece) { call.receive(from, piece); });
  }
  for (int i = 0; i < ranks; ++i) {
    const auto rank = static_cast<std::size_t>((group.rank() + i) % ranks);
    copy_values(std::span(room).subspan(static_cast<std::size_t>(i) * block, block),
                all.subspan(rank * block, block));
  }
  call.finish();
}

std::vector<std::vector<std::byte>> gather(Group& group, const WaitPolicy& policy,
                                           std::span<const std::byte> mine, int root) {
  Call call(group, policy, "gathering with the other ranks");
  std::vector<std::vector<std::byte>> all;
  std::uint64_t size = mine.size();
  if (group.rank() != root) {
    call.send(root, message_of(size));
    in_pieces(mine, kPiece, [&](std::span<const std::byte> piece) { call.send(root, piece); });
    call.finish();
    return all;
  }
  for (int rank = 0; rank < group.size(); ++rank) {
    auto& part = all.emplace_back();
    if (rank == root) {
      part.assign(mine.begin(), mine.end());
      continue;
    }
    call.receive(rank, std::as_writable_bytes(std::span(&size, 1)));
    part.resize(size);
    in_pieces(std::span(part), kPiece,
              [&](std::span<std::byte> piece) { call.receive(rank, piece); });
  }
  return all;
}

void all_reduce_sum(Group& group, const WaitPolicy& policy, std::span<float> values) {
  if (group.size() == 1 || values.empty()) return;
  if (values.size_bytes() <= kFewBytes) return add_all(group, policy, values);
  // What comes from the others needs as much memory as the values themselves.
  constexpr std::size_t kAtOnce = std::size_t{16} << 20;
  in_pieces(values, kAtOnce, [&](std::span<float> piece) { add_blocks(group, policy, piece); });
}

}  // namespace forebay::net
