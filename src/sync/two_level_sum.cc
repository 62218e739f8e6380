#include "sync/two_level_sum.hpp"

#include <algorithm>
#include <cstring>

namespace forebay {
namespace {

// Measured: where the second meeting costs more than adding up the whole
// (docs/results/allreduce.md)
constexpr std::size_t kShort = std::size_t{16} << 10;
constexpr std::size_t kSmallestSlice = std::size_t{4} << 10;
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kBytesOfStep = std::size_t{1} << 20;  // of all ranks
constexpr std::size_t kReserveAtLeast = std::size_t{1} << 20;

}  // namespace

TwoLevelSum::TwoLevelSum(NodeLane lane, std::size_t rank, std::size_t columns, bool several_nodes,
                         std::unique_ptr<Summation> column)
    : lane_(lane),
      rank_(rank),
      columns_(columns),
      several_nodes_(several_nodes),
      column_(std::move(column)) {}

/// Whether the first `ranks` ranks have come as far as this sum.
bool TwoLevelSum::all(Flag flag, std::size_t ranks) const {
  return std::ranges::all_of(lane_.flags.first(ranks), [&](NodeLane::Flags& flags) {
    return (flags.*flag).load(std::memory_order_acquire) >= number_;
  });
}

bool TwoLevelSum::free() const {
  if (alone_) return all(&NodeLane::Flags::reduced, lane_.ranks());
  return rank_ != 0 || all(&NodeLane::Flags::released, lane_.ranks());
}

/// In doubling steps, since each one may be a system call on every page.
void TwoLevelSum::reserve(std::size_t bytes) {
  if (bytes <= reserved_) return;
  const std::size_t wanted =
      std::min(std::max({bytes, reserved_ * 2, kReserveAtLeast}), lane_.slot_bytes);
  lane_.memory->reserve(lane_.offset(rank_) + reserved_, wanted - reserved_);
  reserved_ = wanted;
}

std::span<std::byte> TwoLevelSum::begin(TensorType type, Combination how, std::size_t bytes) {
  reserve(bytes);
  type_ = type;
  how_ = how;
  bytes_ = bytes;
  plan();
  return {lane_.slot(rank_), bytes};
}

/// Who adds up what, the same on all ranks (and, column by column, on all nodes).
void TwoLevelSum::plan() {
  alone_ = !several_nodes_ && bytes_ <= kShort;
  slices_ = alone_ ? 1 : std::clamp<std::size_t>(bytes_ / kSmallestSlice, 1, columns_);
  const std::size_t share = (bytes_ + slices_ - 1) / slices_;
  const std::size_t slice = (share + kAlignment - 1) / kAlignment * kAlignment;
  begin_ = alone_ ? 0 : std::min(rank_ * slice, bytes_);
  end_ = alone_ ? bytes_ : std::min(begin_ + slice, bytes_);
  if (!alone_ && rank_ >= slices_) begin_ = end_ = bytes_;
  added_ = begin_;
  sources_.clear();
  for (std::size_t rank = 0; rank < lane_.ranks(); ++rank) sources_.push_back(lane_.slot(rank));
}

void TwoLevelSum::start() {
  phase_ = Phase::done;
  if (bytes_ == 0) return;
  ++number_;
  mine().arrived.store(number_, std::memory_order_release);
  phase_ = rank_ < slices_ || alone_ ? Phase::arriving : Phase::meeting;
  if (alone_ && own_result_.size() < bytes_) own_result_.resize(kShort);
  pace_.begin();
}

std::optional<Summation::Rest> TwoLevelSum::step() {
  const std::int64_t begin_ns = now_ns();
  if (phase_ == Phase::arriving) {
    if (!all(&NodeLane::Flags::arrived, lane_.ranks())) return pace_.rest_after(begin_ns);
    phase_ = Phase::adding;
  }
  if (phase_ == Phase::adding) return add_some();
  if (phase_ == Phase::crossing) return cross();
  if (phase_ == Phase::meeting) {
    if (!all(&NodeLane::Flags::reduced, slices_)) return pace_.rest_after(begin_ns);
    phase_ = Phase::done;
  }
  return std::nullopt;
}

std::optional<Summation::Rest> TwoLevelSum::add_some() {
  const std::size_t most = std::max(kBytesOfStep / lane_.ranks() / kAlignment, std::size_t{1});
  const std::size_t count = std::min(most * kAlignment, end_ - added_);
  std::byte* const into = (alone_ ? own_result_.data() : lane_.slot(0)) + added_;
  for (std::size_t rank = 0; rank < lane_.ranks(); ++rank) {
    sources_[rank] = lane_.slot(rank) + added_;
  }
  combine_all(type_, how_, sources_, {into, count});
  added_ += count;
  if (added_ < end_) return Rest(0);
  if (!several_nodes_ || begin_ == end_) return reduced();
  // MPI must not work on shared memory that goes when this process gives up: a copy of it.
  const auto room = column_->begin(type_, how_, end_ - begin_);
  std::memcpy(room.data(), lane_.slot(0) + begin_, room.size());
  column_->start();
  phase_ = Phase::crossing;
  return Rest(0);
}

std::optional<Summation::Rest> TwoLevelSum::cross() {
  if (const auto rest = column_->step()) return rest;
  const auto sums = column_->result();
  std::memcpy(lane_.slot(0) + begin_, sums.data(), sums.size());
  column_->release();
  return reduced();
}

std::optional<Summation::Rest> TwoLevelSum::reduced() {
  mine().reduced.store(number_, std::memory_order_release);
  if (alone_) {
    phase_ = Phase::done;
    return std::nullopt;
  }
  phase_ = Phase::meeting;
  pace_.begin();
  return Rest(0);
}

std::span<const std::byte> TwoLevelSum::result() const {
  return {alone_ ? own_result_.data() : lane_.slot(0), bytes_};
}

void TwoLevelSum::release() { mine().released.store(number_, std::memory_order_release); }

}  // namespace forebay
