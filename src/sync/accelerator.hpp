// What sums on a device (a GPU) need of it: a stream that does one thing after the other while
// nobody waits, memory, and sums over ranks between their devices.
//
// Two implementations: CUDA with NCCL (nccl_accelerator.cc), and one of the tests, which needs no
// device. One device for each rank. Of the progress thread, but for what says otherwise.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/combine.hpp"
#include "core/non_copyable.hpp"
#include "forebay/communicator.hpp"
#include "forebay/tensor.hpp"

namespace forebay {

/// A point in the work of a stream of the caller.
class DeviceMoment : private NonCopyable {
 public:
  virtual ~DeviceMoment() = default;
};

/// A stream with memory for one sum. What it is given is done later, in the order of calls; nothing
/// waits but destruction, for all that is on its way. All throw communication.
class DeviceStream : private NonCopyable {
 public:
  virtual ~DeviceStream() = default;

  /// Equally much memory there and here, the latter such that copies are quick and do not wait.
  virtual std::span<std::byte> there() const = 0;
  virtual std::span<std::byte> here() const = 0;
  /// What is given from now on comes after `moment`.
  virtual void wait_for(const DeviceMoment& moment) = 0;
  /// From either memory to either.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  /// Whether all that it was given is done; keeps things moving.
  virtual bool idle() = 0;
};

/// What a device does to numbers on their way: a mean is one operation there.
struct DeviceReduction {
  TensorType type = TensorType::float32;
  Combination how = Combination::sum;
  bool mean = false;  ///< of sums
};

class Accelerator : private NonCopyable {
 public:
  virtual ~Accelerator() = default;

  /// Throws io when there is not enough memory.
  virtual std::unique_ptr<DeviceStream> stream(std::size_t bytes) = 0;
  /// What the caller's stream has been given up to now. Thread-safe. Throws usage for what is no
  /// stream of this device.
  virtual std::shared_ptr<const DeviceMoment> moment_of(void* stream) = 0;
  /// Gives `stream` the reduction of its first bytes over ranks, in place. Ranks call this in the
  /// same order, and not again before settled().
  virtual void all_reduce(DeviceStream& stream, std::size_t bytes,
                          const DeviceReduction& reduction) = 0;
  /// Whether the stream has been given the last reduction by now. Throws what has gone wrong with
  /// any, here or, as far as this rank can know, elsewhere.
  virtual bool settled() = 0;
  /// From host to device, at once; waits.
  virtual void copy_now(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  /// Ends the reductions that are on their way, without a result. Then only streams may be used,
  /// and no more reductions are possible. Idempotent.
  virtual void abort() noexcept = 0;
  /// "CUDA device 0 (name), NCCL 2.20".
  virtual std::string describe() const = 0;
};

/// The device of this rank, which is `device` or, where that is -1, that of its rank in the node.
/// Collective. Throws unsupported where Forebay was built without NCCL, where a device or its
/// driver is missing, or where ranks would have to share one.
std::shared_ptr<Accelerator> open_nccl(Communicator& comm, int device);

}  // namespace forebay
