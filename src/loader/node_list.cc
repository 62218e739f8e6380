#include "loader/node_list.hpp"

#include <algorithm>
#include <utility>

#include "order/dealt_epoch.hpp"
#include "order/order_cost.hpp"

namespace forebay {
namespace {

/// Part `number` of `parts` of the samples of `runs`, in equal parts.
std::vector<SampleRun> part_of(const std::vector<SampleRun>& runs, int number, int parts) {
  std::uint64_t all = 0, place = 0;
  for (const SampleRun& run : runs) all += run.count;
  const std::uint64_t first = share_begin_of(number, all, parts);
  const std::uint64_t last = share_begin_of(number + 1, all, parts);
  std::vector<SampleRun> part;
  for (const SampleRun& run : runs) {
    const std::uint64_t begin = std::max(place, first), end = std::min(place + run.count, last);
    if (begin < end) {
      const std::uint64_t skipped = begin - place;
      part.push_back({run.sample + skipped, end - begin, run.entry + skipped});
    }
    place += run.count;
  }
  return part;
}

}  // namespace

NodeList::NodeList(const OrderOptions& order, RunEpochs epochs, const DrawWindows& windows,
                   NodeShare share, Begin begin)
    : epochs_(std::move(epochs)),
      grid_(windows),
      share_(std::move(share)),
      small_(begin == Begin::small && loads_as_drawn(order)) {
  const RankRuns batch{.batch = order.batch, .ranks = order.ranks};
  for (std::size_t i = 0; i < share_.ranks.size(); ++i) {
    const bool own = i == share_.own;
    if (!own && share_.root < 0) continue;
    members_.push_back({.buffers = RankBuffers(share_.ranks[i]),
                        .entry = i * grid_.most_loaded(),
                        .share = batch.share(share_.ranks[i]),
                        .own = own});
  }
}

std::shared_ptr<const DrawBuffer> NodeList::at(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  while (number >= own_.end() && !ended_ && !draws_nothing_) extend();
  return own_.at(number);
}

void NodeList::forget(std::uint64_t number, std::uint64_t window) {
  const std::lock_guard lock(mutex_);
  own_.forget(number);
  windows_.forget(window);
}

std::optional<std::uint64_t> NodeList::windows_for(std::uint64_t epoch, std::uint64_t iteration) {
  const std::lock_guard lock(mutex_);
  while (true) {
    std::uint64_t number = windows_.end() - windows_.all().size();
    for (const auto& window : windows_.all()) {
      ++number;
      if (window->epoch == epoch && iteration < window->end) return number;
    }
    if (ended_) return windows_.end();
    extend();
  }
}

std::uint64_t NodeList::iterations(std::uint64_t window) {
  const std::lock_guard lock(mutex_);
  while (window >= windows_.end() && !ended_) extend();
  return window < windows_.end() ? 1 : 0;
}

std::vector<SampleRun> NodeList::runs(const WindowPart& part) {
  std::shared_ptr<const Window> window;
  {
    const std::lock_guard lock(mutex_);
    window = windows_.at(part.window);
  }
  std::vector<SampleRun> all;
  for (const Piece& piece : window->pieces) {
    for (SampleRun run : runs_of(piece.loads, piece.slots.first, piece.slots.count)) {
      run.entry += piece.entry;
      all.push_back(run);
    }
  }
  std::ranges::stable_sort(all, {}, &SampleRun::sample);
  return share_.roots == 1 ? all : part_of(all, share_.root, share_.roots);
}

bool NodeList::begin_epoch() {
  auto next = epochs_.next();
  if (!next) return false;
  epoch_ = std::make_shared<const RunEpoch>(std::move(*next));
  step_ = epoch_->begin;
  for (Member& member : members_) {
    member.buffers.begin(epoch_);
    member.next = member.buffers.next();
    member.listed = 0;
    // Who gets nothing of a whole epoch gets nothing of any other: nobody looks for more.
    const bool nothing = epoch_->order.draws(member.buffers.rank()) == 0;
    if (member.own && member.buffers.is_whole() && nothing) draws_nothing_ = true;
  }
  if (!small_) return true;
  // What is listed in pieces begins where the run does; a whole buffer may begin before.
  small_from_ = step_;
  for (Member& member : members_) {
    if (member.next) member.listed = member.buffers.begin_draw() - member.next->first;
  }
  return true;
}

void NodeList::extend() {
  if (!epoch_ && !begin_epoch()) {
    ended_ = true;
    return;
  }
  const std::uint64_t whole = std::min(grid_.begin(grid_.at(step_) + 1), epoch_->end);
  // One iteration, another one, two, four ... of the run's first window.
  const std::uint64_t piece = step_ + std::max<std::uint64_t>(step_ - small_from_, 1);
  Window window{.epoch = epoch_->order.epoch(), .end = small_ ? std::min(piece, whole) : whole};
  for (Member& member : members_) add_buffers(member, window);
  step_ = window.end;
  if (step_ == whole) small_ = false;
  if (step_ == epoch_->end) epoch_ = nullptr;
  windows_.push(std::move(window));
}

void NodeList::add_buffers(Member& member, Window& window) {
  std::uint64_t used = 0;  // entries
  while (member.next) {
    const Buffer& buffer = *member.next;
    const std::uint64_t first = buffer.first + member.listed;
    if (std::min(first / member.share, epoch_->end - 1) >= window.end) break;
    const std::uint64_t served = std::min(buffer.first + buffer.count, member.buffers.end_draw());
    const std::uint64_t end =
        small_ ? std::min(served, window.end * member.share) : buffer.first + buffer.count;
    // As drawn where pieces are small: a sample a draw.
    const Run slots{member.listed, small_ ? end - std::min(first, end) : samples_in(buffer.loads)};
    if (first < end) {
      require_entries(used + slots.count, grid_.most_loaded());
      add_piece(member, window, {first, end - first}, slots, member.entry + used);
      used += slots.count;
    }
    member.listed = end - buffer.first;
    if (end < served) continue;
    member.next = member.buffers.next();
    member.listed = 0;
  }
}

/// The `draws` that these `slots` of the member's next buffer serve.
void NodeList::add_piece(const Member& member, Window& window, const Run& draws, const Run& slots,
                         std::uint64_t entry) {
  if (member.own) {
    own_.push({.epoch = window.epoch,
               .first = draws.first,
               .count = draws.count,
               .first_slot = slots.first,
               .samples = slots.count,
               .window = windows_.end(),
               .entry = entry});
  }
  if (share_.root >= 0) window.pieces.push_back({member.next->loads, slots, entry});
}

}  // namespace forebay
