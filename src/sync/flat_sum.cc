#include "sync/summation.hpp"

#include <algorithm>
#include <utility>

#include "comm/nonblocking.hpp"
#include "comm/waiting.hpp"
#include "core/clock.hpp"

namespace forebay {
namespace {

/// Memory that is kept from sum to sum, and for as long as MPI may work on it.
class Room {
 public:
  /// The first `bytes`; what was there before may be gone.
  std::span<std::byte> take(std::size_t bytes) {
    if (!memory_ || memory_->size() < bytes) memory_ = std::make_shared<Memory>(bytes);
    return std::span(*memory_).first(bytes);
  }
  SharedBytes share(std::size_t offset, std::size_t bytes) const {
    return {memory_, std::span(*memory_).subspan(offset, bytes)};
  }
  std::span<std::byte> part(std::size_t offset, std::size_t bytes) const {
    return share(offset, bytes).bytes;
  }

 private:
  using Memory = std::vector<std::byte>;
  std::shared_ptr<Memory> memory_;
};

/// A started operation, and how often to ask for its end.
class Watched {
 public:
  void start(NonblockingCollectives::Operation operation) {
    operation_ = std::move(operation);
    pace_.begin();
  }
  /// Nothing, once it is done.
  std::optional<Summation::Rest> look() {
    const std::int64_t begin = now_ns();
    if (!operation_ || operation_->done()) {
      operation_.reset();
      return std::nullopt;
    }
    return pace_.rest_after(begin);
  }

 private:
  NonblockingCollectives::Operation operation_;
  Pace pace_;
};

class MpiSum final : public Summation {
 public:
  explicit MpiSum(std::unique_ptr<NonblockingCollectives> comm) : comm_(std::move(comm)) {}

  bool free() const override { return true; }

  std::span<std::byte> begin(TensorType type, Combination how, std::size_t bytes) override {
    type_ = type;
    how_ = how;
    bytes_ = bytes;
    return room_.take(bytes);
  }

  void start() override {
    if (bytes_ == 0 || comm_->size() == 1) return;
    watched_.start(comm_->all_reduce(room_.share(0, bytes_), type_, how_));
  }

  std::optional<Rest> step() override { return watched_.look(); }
  std::span<const std::byte> result() const override { return room_.part(0, bytes_); }
  void release() override {}

 private:
  std::unique_ptr<NonblockingCollectives> comm_;
  TensorType type_ = TensorType::float32;
  Combination how_ = Combination::sum;
  std::size_t bytes_ = 0;
  Room room_;
  Watched watched_;
};

class DirectSum final : public Summation {
 public:
  explicit DirectSum(std::unique_ptr<NonblockingCollectives> comm)
      : comm_(std::move(comm)), ranks_(static_cast<std::size_t>(comm_->size())) {}

  bool free() const override { return true; }

  std::span<std::byte> begin(TensorType type, Combination how, std::size_t bytes) override {
    type_ = type;
    how_ = how;
    bytes_ = bytes;
    const std::size_t elements = bytes / size_of(type);
    whole_ = bytes * ranks_ <= kSmall;
    block_ = whole_ ? bytes : (elements + ranks_ - 1) / ranks_ * size_of(type);
    return mine_.take(std::max(bytes, whole_ ? 0 : block_ * ranks_)).first(bytes);
  }

  void start() override {
    phase_ = Phase::done;
    if (bytes_ == 0 || ranks_ == 1) return;
    theirs_.take(block_ * ranks_);
    summed_ = 0;
    phase_ = Phase::exchanging;
    const SharedBytes all = theirs_.share(0, block_ * ranks_);
    if (whole_) {
      watched_.start(comm_->all_gather(mine_.share(0, bytes_), all));
    } else {
      std::ranges::fill(mine_.part(bytes_, block_ * ranks_ - bytes_), std::byte{0});
      watched_.start(comm_->all_to_all(mine_.share(0, block_ * ranks_), all));
    }
  }

  std::optional<Rest> step() override {
    if (phase_ == Phase::done) return std::nullopt;
    if (phase_ == Phase::summing) return sum_some();
    if (const auto rest = watched_.look()) return rest;
    if (phase_ == Phase::gathering) {
      phase_ = Phase::done;
      return std::nullopt;
    }
    phase_ = Phase::summing;
    return sum_some();
  }

  std::span<const std::byte> result() const override { return mine_.part(0, bytes_); }
  void release() override {}

 private:
  enum class Phase : std::uint8_t { exchanging, summing, gathering, done };
  static constexpr std::size_t kSmall = std::size_t{32} << 10;
  static constexpr std::size_t kBytesOfStep = std::size_t{1} << 20;  // of all ranks

  /// Where the sums of this rank go: to their place in the result.
  std::size_t place() const {
    return whole_ ? 0 : static_cast<std::size_t>(comm_->rank()) * block_;
  }

  std::optional<Rest> sum_some() {
    const std::size_t most = std::max<std::size_t>(kBytesOfStep / ranks_ / 64 * 64, 64);
    const std::size_t count = std::min(most, block_ - summed_);
    std::vector<const std::byte*> sources;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      sources.push_back(theirs_.part(rank * block_ + summed_, count).data());
    }
    combine_all(type_, how_, sources, mine_.part(place() + summed_, count));
    summed_ += count;
    if (summed_ < block_) return Rest(0);
    if (whole_) {
      phase_ = Phase::done;
      return std::nullopt;
    }
    phase_ = Phase::gathering;
    watched_.start(
        comm_->all_gather(mine_.share(place(), block_), mine_.share(0, block_ * ranks_)));
    return Rest(0);
  }

  std::unique_ptr<NonblockingCollectives> comm_;
  std::size_t ranks_;
  TensorType type_ = TensorType::float32;
  Combination how_ = Combination::sum;
  std::size_t bytes_ = 0;
  std::size_t block_ = 0;   ///< bytes that one rank adds up
  bool whole_ = false;      ///< each rank adds up everything
  std::size_t summed_ = 0;  ///< bytes of the block
  Phase phase_ = Phase::done;
  Room mine_;    ///< the numbers, then the result
  Room theirs_;  ///< one block of each rank
  Watched watched_;
};

}  // namespace

std::unique_ptr<Summation> mpi_sum(std::unique_ptr<NonblockingCollectives> comm) {
  return std::make_unique<MpiSum>(std::move(comm));
}

std::unique_ptr<Summation> direct_sum(std::unique_ptr<NonblockingCollectives> comm) {
  return std::make_unique<DirectSum>(std::move(comm));
}

}  // namespace forebay
