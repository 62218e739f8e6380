#include "read/walk/hand_off.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/messages.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

struct Stretch {
  std::uint64_t position;
  std::uint64_t count;
  int root;
};

/// The pieces of all roots in ascending position, joined where one root goes on.
std::vector<Stretch> stretches(std::span<const std::vector<Piece>> roots) {
  std::vector<Stretch> pieces;
  for (std::size_t root = 0; root < roots.size(); ++root) {
    for (const Piece& piece : roots[root]) {
      if (piece.count > 0) pieces.push_back({piece.position, piece.count, static_cast<int>(root)});
    }
  }
  const auto before = [](const Stretch& a, const Stretch& b) { return a.position < b.position; };
  if (!std::ranges::is_sorted(pieces, before)) std::ranges::sort(pieces, before);
  std::vector<Stretch> joined;
  for (const Stretch& piece : pieces) {
    Stretch* const last = joined.empty() ? nullptr : &joined.back();
    if (last != nullptr && last->root == piece.root &&
        last->position + last->count == piece.position) {
      last->count += piece.count;
    } else {
      joined.push_back(piece);
    }
  }
  return joined;
}

/// Whether a cursor at position `from` helps to get to position `to`, which is not before it. What
/// a run is filled up with may lie before what it follows.
bool leads_to(const StridedOrder& order, std::uint64_t from, std::uint64_t to) {
  return order.sample(from) != 0 && order.epoch(from) == order.epoch(to) &&
         order.global(from) <= order.global(to);
}

struct Message {
  static constexpr std::uint64_t kLeft = ~std::uint64_t{0};
  lmdb::Cursor cursor;
  std::uint64_t sample = kLeft;
};

}  // namespace

std::vector<Leg> legs_of(const StridedOrder& order, std::span<const std::vector<Piece>> roots,
                         int me, const WindowEnds& ends) {
  const std::vector<Stretch> all = stretches(roots);
  std::vector<Leg> legs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].root != me) continue;
    const std::uint64_t begin = all[i].position;
    const std::uint64_t end = begin + all[i].count;
    const bool first = i == 0;
    const bool last = i + 1 == all.size();
    const std::uint64_t end_before =
        first ? ends.before_position : all[i - 1].position + all[i - 1].count;
    const std::uint64_t begin_after = last ? ends.after_position : all[i + 1].position;
    Leg leg{.position = begin, .count = all[i].count};
    if (leads_to(order, end_before, begin)) leg.from = first ? ends.before : all[i - 1].root;
    if (leads_to(order, end, begin_after)) leg.to = last ? ends.after : all[i + 1].root;
    legs.push_back(leg);
  }
  return legs;
}

HandOffPlan::HandOffPlan(std::shared_ptr<const RootMap> map, std::uint64_t first, std::uint64_t end)
    : map_(std::move(map)), end_(end) {
  const std::uint64_t coalesce = map_->order().coalesce();
  first_window_ = first / coalesce;
  end_window_ = end / coalesce + (end % coalesce > 0 ? 1 : 0);
}

HandOffPlan::Pieces HandOffPlan::pieces_of_all(std::uint64_t window) const {
  const std::uint64_t coalesce = map_->order().coalesce();
  const std::uint64_t iterations = std::min(coalesce, end_ - window * coalesce);
  Pieces all;
  for (int root = 0; root < map_->roots(); ++root) {
    all.push_back(map_->pieces(root, {window, Phase::whole, iterations}));
  }
  return all;
}

std::vector<Leg> HandOffPlan::legs(int root, std::uint64_t window) const {
  WindowEnds ends;
  if (window > first_window_) {
    const Stretch last = stretches(pieces_of_all(window - 1)).back();
    ends.before = last.root;
    ends.before_position = last.position + last.count;
  }
  if (window + 1 < end_window_) {
    const Stretch next = stretches(pieces_of_all(window + 1)).front();
    ends.after = next.root;
    ends.after_position = next.position;
  }
  return legs_of(map_->order(), pieces_of_all(window), root, ends);
}

void CursorLink::send(int to, const lmdb::Cursor& cursor, std::uint64_t sample) {
  const Message message{.cursor = cursor, .sample = sample};
  roots_->send(to, message_of(message));
}

void CursorLink::leave() {
  const Message farewell;
  for (int root = 0; root < roots_->size(); ++root) {
    if (root != roots_->rank()) roots_->send(root, message_of(farewell));
  }
}

std::optional<lmdb::Cursor> CursorLink::receive(int from, std::uint64_t sample,
                                                const GiveUp& give_up) {
  const auto sender = static_cast<std::size_t>(from);
  if (has_left_[sender]) return lmdb::Cursor();
  const auto bytes =
      forebay::receive(*roots_, from, limit_, give_up,
                       fmt::format("root {} to hand on its cursor at sample {}", from, sample));
  if (!bytes) return std::nullopt;
  auto message = value_in<Message>(*bytes, "cursors");
  if (message.sample == Message::kLeft) {
    has_left_[sender] = true;
    return lmdb::Cursor();
  }
  if (!message.cursor.valid() || message.cursor.depth > lmdb::kMaxDepth ||
      message.sample > sample) {
    throw Error(ErrorKind::communication,
                fmt::format("root {} has handed on something that does not lead to sample {}", from,
                            sample),
                "this is a fault of Forebay: please report it");
  }
  message.cursor.sample = message.sample;
  return message.cursor;
}

}  // namespace forebay
