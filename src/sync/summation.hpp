// Sums of one buffer over all ranks, in the background: nothing here waits.
//
//   free()? -> begin(type, how, bytes) -> fill the memory -> start()
//     -> step(), step(), ... until it has no more to do -> result() -> release() -> free()? ...
//
// One Summation carries one sum at a time. Several (lanes) let the transfer of one buffer overlap
// the copying of the next: the n-th transfer of every rank uses lane n % lanes.
//
//   mpi         MPI_Iallreduce of the whole buffer
//   direct      each rank gets one block of all ranks' buffers (MPI_Ialltoall), adds them up in the
//               order of ranks, and gives the sums to all (MPI_Iallgather)
//   nccl        NCCL's sum on the devices of the ranks: see device_sum.cc
//   two_level   the ranks of a node put their numbers into memory that they share, and each adds up
//               one slice of them; between nodes, slice i of every node is summed by its rank i;
//               all read the result where it lies
//
// With `direct`, and `two_level` over it, every element is added up in the same order, wherever it
// lies in a buffer: results are the same on all ranks, and from run to run. A wire format makes
// float32 and float64 numbers 16 bits long while they move between ranks (two_level: between
// nodes); they are added up in single precision, and rounded once before and once after.
//
// Of one thread at a time, usually the progress thread, but for the constructor of Summations.
// After an exception from any method none may be called but the destructor.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/combine.hpp"
#include "core/non_copyable.hpp"
#include "forebay/communicator.hpp"
#include "forebay/sync.hpp"

namespace forebay {

/// Of a transfer, where nothing is given: Horovod's.
inline constexpr std::uint64_t kUsualFusion = std::uint64_t{64} << 20;

std::string_view to_string(WireFormat wire);
std::string_view to_string(SyncAlgorithm algorithm);
/// Throws usage, on all ranks, for what makes no sense or differs between ranks. Collective.
void check_options(Communicator& comm, const SyncOptions& options);

class Accelerator;
class DeviceMoment;

class Summation : private NonCopyable {
 public:
  using Rest = std::chrono::microseconds;

  virtual ~Summation() = default;

  /// Whether begin() may be called: nobody needs the memory of the sum before any more. Moves
  /// nothing, and turns true by what other ranks do, so ask again later.
  virtual bool free() const = 0;
  /// Memory for this rank's numbers, of unspecified content; valid until start(). All ranks give
  /// the same arguments; `how` is sum, min or max, and `bytes` is at most Summations::largest().
  /// Throws io when there is not enough memory.
  virtual std::span<std::byte> begin(TensorType type, Combination how, std::size_t bytes) = 0;
  /// Between begin() and start(): the result shall be the mean over ranks. False where it cannot:
  /// then whoever takes the sum out divides it.
  virtual bool make_mean() { return false; }
  /// Between begin() and start(), by ascending `at`: these numbers, in the memory of the device,
  /// instead of what the memory of begin() has at this place. They stay as they are until the sum
  /// is taken. `ready`: when they are there. Only where Summations::on_device().
  virtual void put(std::size_t at, std::span<const std::byte> from, const DeviceMoment& ready);
  virtual void start() = 0;
  /// Moves on, for at most some 0.2 ms. Returns when it wants to be called again at the latest (0:
  /// at once); nothing, once the result is there. Throws communication.
  virtual std::optional<Rest> step() = 0;
  /// The combined numbers, until release().
  /// Not those that put() has brought: take() them.
  virtual std::span<const std::byte> result() const = 0;
  /// After the result is there: copies combined numbers, which need not be done before taken().
  virtual void take(std::size_t at, std::span<std::byte> to);
  virtual bool taken() { return true; }
  virtual void release() = 0;
  /// After a failure: ends what is on its way and returns when no more memory of callers is
  /// touched.
  virtual void give_up() noexcept {}
};

struct SummationOptions {
  SyncAlgorithm algorithm = SyncAlgorithm::automatic;
  WireFormat wire = WireFormat::as_is;
  bool deterministic = false;
  std::size_t largest = std::size_t{64} << 20;  ///< bytes of one sum
  unsigned lanes = 2;
  int device = -1;                                     ///< nccl: see SyncOptions
  std::shared_ptr<Accelerator> accelerator = nullptr;  ///< nccl: instead of a device, for tests
};

// Over all ranks of a communicator, without a look at where they run.

/// MPI_Iallreduce. Numbers of 16 bits are rounded after every addition.
std::unique_ptr<Summation> mpi_sum(std::unique_ptr<NonblockingCollectives> comm);

/// Blocks that each rank adds up in the order of ranks.
///
///   rank 0:  a0 a1 a2                a0 b0 c0   sum 0 = a0 + b0 + c0
///   rank 1:  b0 b1 b2  all_to_all->  a1 b1 c1   sum 1                  all_gather-> 0 1 2
///   rank 2:  c0 c1 c2                a2 b2 c2   sum 2
///
/// Small buffers go to all ranks as they are (all_gather), and each adds up the whole.
std::unique_ptr<Summation> direct_sum(std::unique_ptr<NonblockingCollectives> comm);

// The lanes of a rank.

/// On the device of `accelerator`. Throws io or communication where it has no room for them.
std::vector<std::unique_ptr<Summation>> device_sums(const std::shared_ptr<Accelerator>& accelerator,
                                                    std::size_t lanes, std::size_t largest);
/// In memory that the ranks of `node` share. `columns`: how many ranks of each node add up slices;
/// where there are `several_nodes`, they sum them with `over_nodes` of their column, one a lane.
/// Collective over `node`.
std::vector<std::unique_ptr<Summation>> two_level_sums(
    Communicator& node, std::size_t lanes, std::size_t largest, std::size_t columns,
    bool several_nodes, const std::function<std::unique_ptr<Summation>()>& over_nodes);

// Numbers that move between ranks as 16 bits.

/// What numbers of `type` are on the wire: only float32 and float64 become shorter.
TensorType wire_type(TensorType type, WireFormat wire);

/// Numbers of `type` (float32, float64) as 16 bits of `wire` (float16, bfloat16), and back.
/// Unaligned. Local, thread-safe.
void to_wire(TensorType type, std::span<const std::byte> numbers, TensorType wire,
             std::span<std::byte> bits);
void from_wire(TensorType wire, std::span<const std::byte> bits, TensorType type,
               std::span<std::byte> numbers);

/// Does what `inner` does, with numbers that are converted before and after. `inner` itself, where
/// `wire` is as_is.
std::unique_ptr<Summation> over_wire(std::unique_ptr<Summation> inner, WireFormat wire);

/// The lanes of one engine, and what they stand on.
class Summations : private NonCopyable {
 public:
  /// Collective. two_level: `lanes` buffers of `largest` bytes for each rank in shared memory, of
  /// which only what was used is ever there. Throws usage where `deterministic` asks for what the
  /// algorithm cannot give. nccl throws unsupported, on all ranks, where it cannot be: see
  /// open_nccl().
  Summations(Communicator& comm, const SummationOptions& options);

  std::size_t lanes() const { return lanes_.size(); }
  Summation& lane(std::size_t index) { return *lanes_[index]; }
  std::size_t largest() const { return options_.largest; }
  /// What `automatic` has become.
  SyncAlgorithm algorithm() const { return options_.algorithm; }
  /// The device on which sums are made; null: on the host.
  Accelerator* on_device() const { return options_.accelerator.get(); }
  /// What `bytes` of numbers are on the wire.
  std::size_t wire_bytes(TensorType type, std::size_t bytes) const;
  /// One half sentence: which algorithm, and why.
  std::string explain() const { return explanation_; }

 private:
  void make_flat_lanes(Communicator& comm);
  void make_device_lanes(Communicator& comm);
  void make_two_level_lanes(Communicator& comm, Communicator& node);

  SummationOptions options_;
  std::string explanation_;
  std::vector<std::unique_ptr<Summation>> lanes_;
};

}  // namespace forebay
