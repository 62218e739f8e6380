// A CUDA device, and NCCL between those of all ranks.
//
// NCCL is asked not to block: a call may return while it is still at work (ncclInProgress), and the
// next one has to wait until ncclCommGetAsyncError says that it has ended. The same call tells of
// errors that come later. A communicator with an error is aborted, which ends its kernels.
//
// CUDA has a current device for each thread, and the progress thread may serve several ranks of a
// process: every call sets its device, and puts the old one back.
#ifdef FOREBAY_NCCL

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <nccl.h>

#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "sync/accelerator.hpp"

namespace forebay {
namespace {

/// For ranks to connect, and for what is on its way to end.
constexpr std::chrono::nanoseconds kConnectPatience = std::chrono::minutes(1);
constexpr std::chrono::nanoseconds kEndPatience = std::chrono::seconds(10);
constexpr std::string_view kOtherAlgorithm = "choose another algorithm for sums";

void check_cuda(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  const bool memory = result == cudaErrorMemoryAllocation;
  throw Error(memory ? ErrorKind::io : ErrorKind::communication,
              fmt::format("{}: {}", call, cudaGetErrorString(result)),
              memory ? "choose a smaller fusion buffer" : "look at the CUDA device and its driver");
}

void check_nccl(ncclResult_t result, const char* call, ncclComm_t comm) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* const more = ncclGetLastError(comm);
  throw Error(
      ErrorKind::communication,
      fmt::format("{}: {}{}{}", call, ncclGetErrorString(result),
                  more == nullptr || *more == '\0' ? "" : ": ", more == nullptr ? "" : more),
      "NCCL tells more with NCCL_DEBUG=INFO");
}

/// Makes a device the current one of this thread.
class CurrentDevice : private NonCopyable {
 public:
  explicit CurrentDevice(int device) {
    check_cuda(cudaGetDevice(&before_), "cudaGetDevice");
    check_cuda(cudaSetDevice(device), "cudaSetDevice");
  }
  ~CurrentDevice() { cudaSetDevice(before_); }

 private:
  int before_ = 0;
};

class CudaMoment final : public DeviceMoment {
 public:
  CudaMoment(int device, cudaStream_t stream) : device_(device) {
    const CurrentDevice current(device_);
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
    const cudaError_t result = cudaEventRecord(event_, stream);
    if (result == cudaSuccess) return;
    cudaEventDestroy(event_);
    throw Error(
        ErrorKind::usage,
        fmt::format("the stream of a tensor cannot be used: {}", cudaGetErrorString(result)),
        fmt::format("give a stream of CUDA device {}, the engine's", device_));
  }
  ~CudaMoment() override { cudaEventDestroy(event_); }

  cudaEvent_t event() const { return event_; }

 private:
  int device_;
  cudaEvent_t event_ = nullptr;
};

class CudaStream final : public DeviceStream {
 public:
  CudaStream(int device, std::size_t bytes) : device_(device), bytes_(bytes) {
    const CurrentDevice current(device_);
    try {
      check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
      check_cuda(cudaMalloc(&there_, bytes), "cudaMalloc");
      check_cuda(cudaMallocHost(&here_, bytes), "cudaMallocHost");
    } catch (...) {
      free();
      throw;
    }
  }
  ~CudaStream() override {
    int before = 0;
    const bool known = cudaGetDevice(&before) == cudaSuccess;
    cudaSetDevice(device_);
    cudaStreamSynchronize(stream_);
    free();
    if (known) cudaSetDevice(before);
  }

  cudaStream_t handle() const { return stream_; }
  std::span<std::byte> there() const override { return {static_cast<std::byte*>(there_), bytes_}; }
  std::span<std::byte> here() const override { return {static_cast<std::byte*>(here_), bytes_}; }

  void wait_for(const DeviceMoment& moment) override {
    const CurrentDevice current(device_);
    check_cuda(cudaStreamWaitEvent(stream_, dynamic_cast<const CudaMoment&>(moment).event(), 0),
               "cudaStreamWaitEvent");
  }

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (bytes == 0) return;
    const CurrentDevice current(device_);
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
  }

  bool idle() override {
    const CurrentDevice current(device_);
    const cudaError_t result = cudaStreamQuery(stream_);
    if (result == cudaErrorNotReady) return false;
    check_cuda(result, "cudaStreamQuery");
    return true;
  }

 private:
  void free() noexcept {
    if (here_ != nullptr) cudaFreeHost(here_);
    if (there_ != nullptr) cudaFree(there_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  int device_;
  std::size_t bytes_;
  cudaStream_t stream_ = nullptr;
  void* there_ = nullptr;
  void* here_ = nullptr;
};

ncclDataType_t nccl_type(TensorType type) {
  switch (type) {
    case TensorType::float16:
      return ncclFloat16;
    case TensorType::bfloat16:
      return ncclBfloat16;
    case TensorType::float32:
      return ncclFloat32;
    case TensorType::float64:
      return ncclFloat64;
    case TensorType::int32:
      return ncclInt32;
    case TensorType::int64:
      return ncclInt64;
  }
  return ncclFloat32;
}

ncclRedOp_t nccl_operation(const DeviceReduction& reduction) {
  if (reduction.mean) return ncclAvg;
  if (reduction.how == Combination::min) return ncclMin;
  return reduction.how == Combination::max ? ncclMax : ncclSum;
}

class NcclAccelerator final : public Accelerator {
 public:
  /// Of all ranks at the same time.
  NcclAccelerator(int device, const ncclUniqueId& id, int rank, int ranks) : device_(device) {
    const CurrentDevice current(device_);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    try {
      check_nccl(ncclCommInitRankConfig(&comm_, ranks, id, rank, &config), "ncclCommInitRank",
                 nullptr);
      if (!settles_within(kConnectPatience)) {
        throw Error(ErrorKind::communication, "NCCL has not connected the ranks within a minute",
                    "NCCL tells more with NCCL_DEBUG=INFO");
      }
    } catch (...) {
      abort();
      throw;
    }
  }

  ~NcclAccelerator() override {
    try {
      finish();
    } catch (const std::exception& error) {
      log(LogLevel::debug, "NCCL ended: {}", error.what());
    }
    abort();
  }

  std::unique_ptr<DeviceStream> stream(std::size_t bytes) override {
    return std::make_unique<CudaStream>(device_, bytes);
  }

  std::shared_ptr<const DeviceMoment> moment_of(void* stream) override {
    return std::make_shared<CudaMoment>(device_, static_cast<cudaStream_t>(stream));
  }

  void all_reduce(DeviceStream& stream, std::size_t bytes,
                  const DeviceReduction& reduction) override {
    require_connection();
    const CurrentDevice current(device_);
    std::byte* const numbers = stream.there().data();
    check_nccl(
        ncclAllReduce(numbers, numbers, bytes / size_of(reduction.type), nccl_type(reduction.type),
                      nccl_operation(reduction), comm_, dynamic_cast<CudaStream&>(stream).handle()),
        "ncclAllReduce", comm_);
  }

  bool settled() override {
    require_connection();
    ncclResult_t state = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", comm_);
    check_nccl(state, "NCCL", comm_);
    return state == ncclSuccess;
  }

  void copy_now(std::byte* to, const std::byte* from, std::size_t bytes) override {
    const CurrentDevice current(device_);
    check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
  }

  void abort() noexcept override {
    if (comm_ != nullptr) ncclCommAbort(std::exchange(comm_, nullptr));
  }

  std::string describe() const override {
    cudaDeviceProp properties{};
    int version = 0;
    cudaGetDeviceProperties(&properties, device_);
    ncclGetVersion(&version);
    return fmt::format("CUDA device {} ({}), NCCL {}.{}.{}", device_, properties.name,
                       version / 10'000, version / 100 % 100, version % 100);
  }

 private:
  void require_connection() const {
    if (comm_ != nullptr) return;
    throw Error(ErrorKind::communication, "sums by NCCL have ended before",
                "look for the first error");
  }

  bool settles_within(std::chrono::nanoseconds patience) {
    const std::int64_t end = now_ns() + patience.count();
    while (!settled()) {
      if (now_ns() > end) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
  }

  /// Leaves in peace; what does not end in time is aborted.
  void finish() {
    if (comm_ == nullptr) return;
    const CurrentDevice current(device_);
    check_nccl(ncclCommFinalize(comm_), "ncclCommFinalize", comm_);
    if (settles_within(kEndPatience)) ncclCommDestroy(std::exchange(comm_, nullptr));
  }

  int device_;
  ncclComm_t comm_ = nullptr;
};

using DeviceId = std::array<char, 16>;

int count_devices() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0) return count;
  throw Error(
      ErrorKind::unsupported,
      fmt::format("sums by NCCL need a CUDA device and its driver: {}",
                  result == cudaSuccess ? "there is no device" : cudaGetErrorString(result)),
      fmt::format("start where there is one, or {}", kOtherAlgorithm));
}

/// The number of this rank's device.
int choose_device(int wanted, int rank_of_node) {
  const int count = count_devices();
  const int device = wanted < 0 ? rank_of_node : wanted;
  if (device < count) return device;
  throw Error(ErrorKind::unsupported,
              fmt::format("sums by NCCL need a CUDA device for each rank: there is no device {}, "
                          "only {} of them",
                          device, count),
              fmt::format("start no more ranks than devices on a node, or {}", kOtherAlgorithm));
}

/// Two ranks on one device: NCCL refuses that, not always clearly.
void require_own_devices(Communicator& comm, const DeviceId& mine) {
  const auto all = gather_all(comm, mine);
  std::map<DeviceId, int> owners;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const auto [owner, is_new] = owners.try_emplace(all[static_cast<std::size_t>(rank)], rank);
    if (is_new) continue;
    throw Error(ErrorKind::unsupported,
                fmt::format("ranks {} and {} have the same CUDA device; NCCL needs one each",
                            owner->second, rank),
                fmt::format("start fewer ranks, give each its device, or {}", kOtherAlgorithm));
  }
}

}  // namespace

std::shared_ptr<Accelerator> open_nccl(Communicator& comm, int device) {
  const int rank_of_node = comm.split_by_node()->rank();
  DeviceId name{};
  collectively(comm, [&] {
    device = choose_device(device, rank_of_node);
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    std::memcpy(name.data(), &properties.uuid, name.size());
  });
  require_own_devices(comm, name);
  ncclUniqueId id{};
  collectively(comm, [&] {
    if (comm.rank() == 0) check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId", nullptr);
  });
  share_value(comm, id);
  std::shared_ptr<Accelerator> accelerator;
  collectively(comm, [&] {
    accelerator = std::make_shared<NcclAccelerator>(device, id, comm.rank(), comm.size());
  });
  return accelerator;
}

}  // namespace forebay

#else

#include "forebay/error.hpp"
#include "sync/accelerator.hpp"

namespace forebay {

std::shared_ptr<Accelerator> open_nccl(Communicator& /*comm*/, int /*device*/) {
  throw Error(
      ErrorKind::unsupported, "Forebay was built without NCCL",
      "choose another algorithm for sums, or build it again with FOREBAY_NCCL=ON where CUDA "
      "and NCCL are installed");
}

}  // namespace forebay

#endif
