// Sums in memory that the ranks of a node share.
//
//   one lane:   [ flags of rank 0 | 1 | ... ]   [ numbers of rank 0 ][ 1 ][ ... ]
//
//   every rank           fills its numbers, sets `arrived`
//   rank i, all arrived  adds up slice i of all ranks, in their order, into the numbers of rank 0;
//                        between nodes: gives it to the sum over its column (rank i of every node),
//                        and puts that in its place; sets `reduced`
//   every rank, all reduced   reads the result out of the numbers of rank 0; sets `released`
//   rank 0, all released      may fill its numbers again; the others could since `reduced`
//
// Flags hold the number of the lane's last sum that has come so far, so that nothing is ever reset.
// A short sum on one node is made by every rank for itself, which saves the second meeting.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>

#include "comm/waiting.hpp"
#include "sync/summation.hpp"

namespace forebay {
namespace {

// Measured: where the second meeting costs more than adding up the whole
// (docs/results/allreduce.md)
constexpr std::size_t kShort = std::size_t{16} << 10;
constexpr std::size_t kSmallestSlice = std::size_t{4} << 10;
constexpr std::size_t kAlignment = 64;
// So that every slot can start with a huge page.
constexpr std::size_t kSlotAlignment = std::size_t{2} << 20;
constexpr std::size_t kBytesOfStep = std::size_t{1} << 20;  // of all ranks
constexpr std::size_t kReserveAtLeast = std::size_t{1} << 20;

/// One lane of what the ranks of a node share.
struct Lane {
  /// One rank's; all bytes zero is the state before the first sum.
  struct alignas(64) Flags {
    std::atomic<std::uint64_t> arrived;
    std::atomic<std::uint64_t> reduced;
    std::atomic<std::uint64_t> released;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  std::shared_ptr<SharedMemory> memory;
  std::span<Flags> flags;      ///< of all ranks of the node
  std::size_t numbers = 0;     ///< where those of rank 0 begin
  std::size_t slot_bytes = 0;  ///< from one rank's numbers to the next one's

  std::size_t ranks() const { return flags.size(); }
  std::size_t offset(std::size_t rank) const { return numbers + rank * slot_bytes; }
  std::byte* slot(std::size_t rank) const { return memory->bytes().data() + offset(rank); }
};

std::size_t round_up(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

class TwoLevelSum final : public Summation {
 public:
  /// `columns`: how many ranks of each node add up slices. `column`: the sum over this rank's
  /// column; empty on a single node, and for ranks that have none.
  TwoLevelSum(Lane lane, std::size_t rank, std::size_t columns, bool several_nodes,
              std::unique_ptr<Summation> column)
      : lane_(std::move(lane)),
        rank_(rank),
        columns_(columns),
        several_nodes_(several_nodes),
        column_(std::move(column)) {}

  bool free() const override {
    if (alone_) return all(&Lane::Flags::reduced, lane_.ranks());
    return rank_ != 0 || all(&Lane::Flags::released, lane_.ranks());
  }

  std::span<std::byte> begin(TensorType type, Combination how, std::size_t bytes) override {
    reserve(bytes);
    type_ = type;
    how_ = how;
    bytes_ = bytes;
    plan();
    return {lane_.slot(rank_), bytes};
  }

  void start() override {
    phase_ = Phase::done;
    if (bytes_ == 0) return;
    ++number_;
    mine().arrived.store(number_, std::memory_order_release);
    phase_ = rank_ < slices_ || alone_ ? Phase::arriving : Phase::meeting;
    if (alone_ && own_result_.size() < bytes_) own_result_.resize(kShort);
    pace_.begin();
  }

  std::optional<Rest> step() override {
    const std::int64_t begin_ns = now_ns();
    if (phase_ == Phase::arriving) {
      if (!all(&Lane::Flags::arrived, lane_.ranks())) return pace_.rest_after(begin_ns);
      phase_ = Phase::adding;
    }
    if (phase_ == Phase::adding) return add_some();
    if (phase_ == Phase::crossing) return cross();
    if (phase_ == Phase::meeting) {
      if (!all(&Lane::Flags::reduced, slices_)) return pace_.rest_after(begin_ns);
      phase_ = Phase::done;
    }
    return std::nullopt;
  }

  std::span<const std::byte> result() const override {
    return {alone_ ? own_result_.data() : lane_.slot(0), bytes_};
  }
  void release() override { mine().released.store(number_, std::memory_order_release); }

 private:
  enum class Phase : std::uint8_t { arriving, adding, crossing, meeting, done };
  using Flag = std::atomic<std::uint64_t> Lane::Flags::*;

  Lane::Flags& mine() const { return lane_.flags[rank_]; }
  /// Whether the first `ranks` ranks have come as far as this sum.
  bool all(Flag flag, std::size_t ranks) const {
    return std::ranges::all_of(lane_.flags.first(ranks), [&](Lane::Flags& flags) {
      return (flags.*flag).load(std::memory_order_acquire) >= number_;
    });
  }

  /// In doubling steps, since each one may be a system call on every page.
  void reserve(std::size_t bytes) {
    if (bytes <= reserved_) return;
    const std::size_t wanted =
        std::min(std::max({bytes, reserved_ * 2, kReserveAtLeast}), lane_.slot_bytes);
    lane_.memory->reserve(lane_.offset(rank_) + reserved_, wanted - reserved_);
    reserved_ = wanted;
  }

  /// Who adds up what, the same on all ranks (and, column by column, on all nodes).
  void plan() {
    alone_ = !several_nodes_ && bytes_ <= kShort;
    slices_ = alone_ ? 1 : std::clamp<std::size_t>(bytes_ / kSmallestSlice, 1, columns_);
    const std::size_t share = (bytes_ + slices_ - 1) / slices_;
    const std::size_t slice = round_up(share, kAlignment);
    begin_ = alone_ ? 0 : std::min(rank_ * slice, bytes_);
    end_ = alone_ ? bytes_ : std::min(begin_ + slice, bytes_);
    if (!alone_ && rank_ >= slices_) begin_ = end_ = bytes_;
    added_ = begin_;
    sources_.clear();
    for (std::size_t rank = 0; rank < lane_.ranks(); ++rank) sources_.push_back(lane_.slot(rank));
  }

  std::optional<Rest> add_some() {
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

  std::optional<Rest> cross() {
    if (const auto rest = column_->step()) return rest;
    const auto sums = column_->result();
    std::memcpy(lane_.slot(0) + begin_, sums.data(), sums.size());
    column_->release();
    return reduced();
  }

  std::optional<Rest> reduced() {
    mine().reduced.store(number_, std::memory_order_release);
    if (alone_) {
      phase_ = Phase::done;
      return std::nullopt;
    }
    phase_ = Phase::meeting;
    pace_.begin();
    return Rest(0);
  }

  Lane lane_;
  std::size_t rank_;
  std::size_t columns_;
  bool several_nodes_;
  std::unique_ptr<Summation> column_;
  std::size_t reserved_ = 0;  ///< bytes of this rank's numbers

  std::uint64_t number_ = 0;  ///< of this sum, from 1
  TensorType type_ = TensorType::float32;
  Combination how_ = Combination::sum;
  std::size_t bytes_ = 0;
  bool alone_ = false;      ///< every rank adds up everything
  std::size_t slices_ = 1;  ///< which ranks 0, 1, ... add up
  std::size_t begin_ = 0;   ///< of this rank's slice
  std::size_t end_ = 0;
  std::size_t added_ = 0;  ///< up to here
  Phase phase_ = Phase::done;
  Pace pace_;
  std::vector<std::byte> own_result_;  ///< of a short sum
  std::vector<const std::byte*> sources_;
};

}  // namespace

std::vector<std::unique_ptr<Summation>> two_level_sums(
    Communicator& node, std::size_t lanes, std::size_t largest, std::size_t columns,
    bool several_nodes, const std::function<std::unique_ptr<Summation>()>& over_nodes) {
  using Flags = Lane::Flags;
  const auto ranks = static_cast<std::size_t>(node.size());
  const auto rank = static_cast<std::size_t>(node.rank());
  const std::size_t slot_bytes = round_up(largest, kSlotAlignment);
  const std::size_t flag_bytes = lanes * ranks * sizeof(Flags);
  const std::size_t first_slot = round_up(flag_bytes, kSlotAlignment);
  const std::shared_ptr<SharedMemory> memory =
      node.share(first_slot + lanes * ranks * slot_bytes, SharedMemoryKind::posix);
  auto* const flags = reinterpret_cast<Flags*>(memory->bytes().data());
  collectively(node, [&] {
    if (node.rank() != 0) return;
    memory->reserve(0, flag_bytes);
    for (std::size_t i = 0; i < lanes * ranks; ++i) new (flags + i) Flags{};
  });
  std::vector<std::unique_ptr<Summation>> sums;
  for (std::size_t i = 0; i < lanes; ++i) {
    const Lane lane{.memory = memory,
                    .flags = {flags + i * ranks, ranks},
                    .numbers = first_slot + i * ranks * slot_bytes,
                    .slot_bytes = slot_bytes};
    sums.push_back(
        std::make_unique<TwoLevelSum>(lane, rank, columns, several_nodes,
                                      several_nodes && rank < columns ? over_nodes() : nullptr));
  }
  return sums;
}

}  // namespace forebay
