#include "read/stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <utility>

#include "core/copy_values.hpp"
#include "forebay/error.hpp"

namespace forebay {

struct Stage::Control {
  Gate filled;
  alignas(64) Gate freed;
  std::atomic<std::uint64_t> wakes;
};

struct alignas(64) Stage::RootState {
  std::atomic<std::uint64_t> published;
  std::atomic<std::int64_t> blocked_begin_ns;
  std::atomic<std::int64_t> blocked_end_ns;
  std::atomic<bool> closed;
};

struct alignas(64) Stage::RankState {
  std::atomic<std::uint64_t> released;
};

namespace {

constexpr std::uint64_t kAlignment = 64;  // a cache line, and the widest vector register
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLeastReserved = std::uint64_t{64} << 10;
constexpr std::uint64_t kMostReserved = std::uint64_t{4} << 20;
constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

Stage::Stage(Communicator& group, const StageShape& shape, SharedMemoryKind kind,
             std::uint64_t first_iteration)
    : shape_(shape), areas_(static_cast<std::size_t>(shape.buffers)) {
  lay_out();
  memory_ = group.share(total_bytes_, kind);
  base_ = memory_->bytes().data();
  collectively(group, [&] {
    if (group.rank() != 0) return;
    memory_->reserve(0, data_offset_);
    std::memset(base_, 0, entries_offset_);
    new (base_) Control();
    for (auto& root : roots()) {
      new (&root) RootState();
      root.published = first_iteration / shape_.iterations * shape_.iterations;
    }
    for (auto& rank : ranks()) {
      new (&rank) RankState();
      rank.released = first_iteration;
    }
  });
  control_ = std::launder(reinterpret_cast<Control*>(base_));
}

void Stage::lay_out() {
  const auto roots = static_cast<std::uint64_t>(shape_.roots);
  const auto buffers = static_cast<std::uint64_t>(shape_.buffers);
  // The table of a window must not outgrow the budget of the samples that it describes.
  if (shape_.entries > shape_.data_bytes / buffers / sizeof(StageEntry)) fail_for_table();
  const std::size_t roots_offset = round_up(sizeof(Control), kAlignment);
  ranks_offset_ = roots_offset + roots * sizeof(RootState);
  entries_offset_ = ranks_offset_ + static_cast<std::size_t>(shape_.ranks) * sizeof(RankState);
  data_offset_ = round_up(entries_offset_ + buffers * shape_.entries * sizeof(StageEntry), kPage);
  area_bytes_ = shape_.data_bytes / buffers / roots / kPage * kPage;
  total_bytes_ = data_offset_ + area_bytes_ * buffers * roots;
}

std::span<Stage::RootState> Stage::roots() const {
  const std::size_t offset = round_up(sizeof(Control), kAlignment);
  return {reinterpret_cast<RootState*>(base_ + offset), static_cast<std::size_t>(shape_.roots)};
}

std::span<Stage::RankState> Stage::ranks() const {
  return {reinterpret_cast<RankState*>(base_ + ranks_offset_),
          static_cast<std::size_t>(shape_.ranks)};
}

StageEntry* Stage::entries(std::uint64_t window) const {
  const std::uint64_t buffer = window % static_cast<std::uint64_t>(shape_.buffers);
  return reinterpret_cast<StageEntry*>(base_ + entries_offset_) + buffer * shape_.entries;
}

bool Stage::free(std::uint64_t window) const {
  const auto buffers = static_cast<std::uint64_t>(shape_.buffers);
  if (window < buffers) return true;
  const std::uint64_t needed = (window - buffers + 1) * shape_.iterations;
  return std::ranges::all_of(ranks(), [needed](const RankState& rank) {
    return rank.released.load(std::memory_order_acquire) >= needed;
  });
}

bool Stage::wait_free(std::uint64_t window, std::chrono::milliseconds limit) {
  const std::uint64_t wakes = control_->wakes;
  control_->freed.wait_for(limit, [&] { return free(window) || control_->wakes != wakes; });
  return free(window);
}

void Stage::begin(int root, std::uint64_t window) {
  const std::uint64_t buffer = window % static_cast<std::uint64_t>(shape_.buffers);
  const auto area =
      buffer * static_cast<std::uint64_t>(shape_.roots) + static_cast<std::uint64_t>(root);
  Area& mine = this->area(window);
  mine.cursor = area * area_bytes_;
  mine.reserved = std::max(mine.reserved, mine.cursor);
}

std::uint64_t Stage::advance(int root, std::uint64_t window, std::uint64_t bytes,
                             std::uint64_t alignment) {
  const std::uint64_t buffer = window % static_cast<std::uint64_t>(shape_.buffers);
  const auto area =
      buffer * static_cast<std::uint64_t>(shape_.roots) + static_cast<std::uint64_t>(root);
  const std::uint64_t area_end = (area + 1) * area_bytes_;
  Area& mine = this->area(window);
  const std::uint64_t offset = round_up(mine.cursor, alignment);
  if (offset > area_end || bytes > area_end - offset) fail_for_area(bytes);
  if (offset + bytes > mine.reserved) {
    // Of an area of which little is used little more than that: shared memory may be small as well.
    const std::uint64_t used = offset + bytes - area * area_bytes_;
    const std::uint64_t unit = std::clamp(std::bit_floor(used), kLeastReserved, kMostReserved);
    const std::uint64_t step =
        std::min(area_end - mine.reserved, round_up(offset + bytes - mine.reserved, unit));
    memory_->reserve(data_offset_ + mine.reserved, step);
    mine.reserved += step;
  }
  mine.cursor = offset + bytes;
  return offset;
}

void Stage::append(int root, std::uint64_t window, std::uint64_t entry, std::uint64_t sample,
                   std::span<const std::byte> key, std::span<const std::byte> value) {
  const std::uint64_t offset = advance(root, window, value.size() + key.size(), kAlignment);
  std::byte* place = base_ + data_offset_ + offset;
  copy_values(value, std::span(place, value.size()));
  copy_values(key, std::span(place + value.size(), key.size()));
  entries(window)[entry] = {offset, value.size(), sample, offset + value.size(), key.size()};
}

std::span<std::byte> Stage::take(int root, std::uint64_t window, std::uint64_t bytes) {
  return {base_ + data_offset_ + advance(root, window, bytes, kPage), bytes};
}

std::span<const std::byte> Stage::copy(int root, std::uint64_t window,
                                       std::span<const std::byte> bytes) {
  std::byte* place = base_ + data_offset_ + advance(root, window, bytes.size(), kAlignment);
  copy_values(bytes, std::span(place, bytes.size()));
  return {place, bytes.size()};
}

void Stage::place(std::uint64_t window, std::uint64_t entry, std::uint64_t sample,
                  std::span<const std::byte> key, std::span<const std::byte> value) {
  entries(window)[entry] = {offset_of(value), value.size(), sample, offset_of(key), key.size()};
}

void Stage::extend(std::span<const std::byte> memory, std::shared_ptr<const void> owner) {
  if (shape_.ranks != 1 || shape_.roots != 1) {
    throw Error(ErrorKind::usage, "a stage of several processes holds all that it points at",
                "this is a fault of Forebay: please report it");
  }
  beyond_ = memory;
  beyond_owner_ = std::move(owner);
}

std::uint64_t Stage::offset_of(std::span<const std::byte> bytes) const {
  if (bytes.empty()) return 0;
  const std::less<> before;
  const std::byte* const place = bytes.data();
  const bool inside = !beyond_.empty() && !before(place, beyond_.data()) &&
                      before(place, beyond_.data() + beyond_.size());
  if (!inside) return static_cast<std::uint64_t>(place - (base_ + data_offset_));
  return total_bytes_ - data_offset_ + static_cast<std::uint64_t>(place - beyond_.data());
}

std::span<const std::byte> Stage::at(std::uint64_t offset, std::uint64_t bytes) const {
  const std::uint64_t data_bytes = total_bytes_ - data_offset_;
  if (offset < data_bytes || bytes == 0) return {base_ + data_offset_ + offset, bytes};
  return beyond_.subspan(offset - data_bytes, bytes);
}

void Stage::fail_for_area(std::uint64_t needed) const {
  throw Error(
      ErrorKind::usage,
      fmt::format("a window of {} samples does not fit its part of the stage ({} bytes, "
                  "{} more for this sample)",
                  shape_.entries, area_bytes_, needed),
      "raise --stage-bytes, or lower --batch, --coalesce, --buffers, --roots, --group or --window");
}

void Stage::fail_for_table() const {
  throw Error(
      ErrorKind::usage,
      fmt::format("the table of {} windows of {} samples alone exceeds the stage of {} bytes",
                  shape_.buffers, shape_.entries, shape_.data_bytes),
      "raise --stage-bytes, or lower --batch, --coalesce or --buffers");
}

void Stage::publish(int root, std::uint64_t iterations, Interval blocked) {
  RootState& state = roots()[static_cast<std::size_t>(root)];
  state.blocked_begin_ns.store(blocked.begin_ns, std::memory_order_relaxed);
  state.blocked_end_ns.store(blocked.end_ns, std::memory_order_relaxed);
  state.published.store(iterations, std::memory_order_release);
  control_->filled.notify_all();
}

bool Stage::published(std::uint64_t iteration) const {
  return std::ranges::all_of(roots(), [iteration](const RootState& root) {
    return root.published.load(std::memory_order_acquire) > iteration;
  });
}

// `closed` is read first: what a root has published before it closed still counts.
bool Stage::abandoned(std::uint64_t iteration) const {
  return std::ranges::any_of(roots(), [iteration](const RootState& root) {
    return root.closed.load(std::memory_order_acquire) &&
           root.published.load(std::memory_order_acquire) <= iteration;
  });
}

bool Stage::wait_published(std::uint64_t iteration, std::chrono::milliseconds limit) {
  const std::uint64_t wakes = control_->wakes;
  control_->filled.wait_for(limit, [&] {
    return published(iteration) || abandoned(iteration) || control_->wakes != wakes;
  });
  if (abandoned(iteration)) {
    throw Error(ErrorKind::cancelled, "the rank that reads for this one has closed its loader",
                "close the loader on all ranks after the same iteration");
  }
  return published(iteration);
}

const StageEntry& Stage::entry(std::uint64_t window, std::uint64_t entry) const {
  return entries(window)[entry];
}

const StageEntry& Stage::entry_of(std::uint64_t window, std::uint64_t entry,
                                  std::uint64_t sample) const {
  const StageEntry& found = this->entry(window, entry);
  if (found.sample == sample) return found;
  throw Error(ErrorKind::communication,
              fmt::format("the stage holds sample {} where {} belongs", found.sample, sample),
              "this is a fault of Forebay: please report it");
}

std::span<const std::byte> Stage::value(const StageEntry& entry) const {
  return at(entry.offset, entry.value_bytes);
}

std::span<const std::byte> Stage::key(const StageEntry& entry) const {
  return at(entry.key_offset, entry.key_bytes);
}

Interval Stage::last_blocked() const {
  Interval last;
  for (const RootState& root : roots()) {
    const std::int64_t end = root.blocked_end_ns.load(std::memory_order_relaxed);
    if (end > last.end_ns) last = {root.blocked_begin_ns.load(std::memory_order_relaxed), end};
  }
  return last;
}

void Stage::release(int rank, std::uint64_t iterations) {
  ranks()[static_cast<std::size_t>(rank)].released.store(iterations, std::memory_order_release);
  control_->freed.notify_all();
}

void Stage::release_all(int rank) { release(rank, kAll); }

void Stage::close_root(int root) {
  roots()[static_cast<std::size_t>(root)].closed.store(true, std::memory_order_release);
  control_->filled.notify_all();
}

void Stage::wake() {
  control_->wakes.fetch_add(1);
  control_->filled.notify_all();
  control_->freed.notify_all();
}

}  // namespace forebay
