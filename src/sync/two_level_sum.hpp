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
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "comm/waiting.hpp"
#include "sync/summation.hpp"

namespace forebay {

/// Memory of one lane.
struct NodeLane {
  /// One rank's; all bytes zero is the state before the first sum.
  struct alignas(64) Flags {
    std::atomic<std::uint64_t> arrived;
    std::atomic<std::uint64_t> reduced;
    std::atomic<std::uint64_t> released;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  std::span<Flags> flags;          ///< of all ranks of the node
  SharedMemory* memory = nullptr;  ///< outlives the lane
  std::size_t numbers = 0;         ///< where those of rank 0 begin in it
  std::size_t slot_bytes = 0;      ///< from one rank's numbers to the next one's

  std::size_t ranks() const { return flags.size(); }
  std::size_t offset(std::size_t rank) const { return numbers + rank * slot_bytes; }
  std::byte* slot(std::size_t rank) const { return memory->bytes().data() + offset(rank); }
};

class TwoLevelSum final : public Summation {
 public:
  /// `columns`: how many ranks of each node add up slices. `column`: the sum over this rank's
  /// column; empty on a single node, and for ranks that have none.
  TwoLevelSum(NodeLane lane, std::size_t rank, std::size_t columns, bool several_nodes,
              std::unique_ptr<Summation> column);

  bool free() const override;
  std::span<std::byte> begin(TensorType type, Combination how, std::size_t bytes) override;
  void start() override;
  std::optional<Rest> step() override;
  std::span<const std::byte> result() const override;
  void release() override;

 private:
  enum class Phase : std::uint8_t { arriving, adding, crossing, meeting, done };
  using Flag = std::atomic<std::uint64_t> NodeLane::Flags::*;

  NodeLane::Flags& mine() const { return lane_.flags[rank_]; }
  bool all(Flag flag, std::size_t ranks) const;
  void reserve(std::size_t bytes);
  void plan();
  std::optional<Rest> add_some();
  std::optional<Rest> cross();
  std::optional<Rest> reduced();

  NodeLane lane_;
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

}  // namespace forebay
