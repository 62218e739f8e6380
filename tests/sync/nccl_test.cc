// Sums by NCCL: on devices where there are some, and what the engine says where there are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forebay/sync.hpp"
#include "tests/support/sync_contract.hpp"

#ifdef FOREBAY_TEST_NCCL
#include <cuda_runtime.h>
#endif

namespace forebay {
namespace {

using test::OneSum;
using test::sums_of_all_kinds;
using ::testing::AllOf;
using ::testing::HasSubstr;

void expect_unsupported(int ranks, int device, const std::string& reason) {
  run_ranks(ranks, 0, [&](const std::shared_ptr<Communicator>& comm) {
    try {
      SyncEngine engine(comm, {.algorithm = SyncAlgorithm::nccl, .device = device});
      ADD_FAILURE() << "an engine without a device";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      EXPECT_THAT(error.what(), AllOf(HasSubstr(reason), HasSubstr("another algorithm")));
    }
    comm->barrier();
  });
}

TEST(Nccl, IsAskedForInWaysThatItKnows) {
  const auto comm = self_communicator();
  const auto fails = [&](SyncOptions options, const std::string& what) {
    options.algorithm = SyncAlgorithm::nccl;
    try {
      SyncEngine engine(comm, options);
      ADD_FAILURE() << what;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_THAT(error.what(), HasSubstr(what));
    }
  };
  fails({.deterministic = true}, "NCCL differ");
  fails({.wire = WireFormat::float16}, "NCCL moves numbers as they are");
  fails({.device = -2}, "device -2");
}

TEST(Nccl, OtherAlgorithmsRefuseMemoryOfDevices) {
  SyncEngine engine(self_communicator(), {.algorithm = SyncAlgorithm::direct});
  std::vector<std::byte> memory(4);
  try {
    engine.allreduce({.name = "t", .shape = {1}}, memory, memory, Reduction::sum, OnDevice{});
    ADD_FAILURE() << "memory of a device was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("'t'"), HasSubstr("nccl")));
  }
  engine.close();
}

#ifndef FOREBAY_TEST_NCCL

TEST(Nccl, IsMissedByAllRanksWhereForebayWasBuiltWithoutIt) {
  expect_unsupported(2, -1, "built without NCCL");
}

#else

int devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

TEST(Nccl, SaysThatADeviceIsMissing) {
  if (devices() > 0) {
    // More ranks than devices.
    expect_unsupported(devices() + 1, -1, "for each rank");
    expect_unsupported(1, devices(), "for each rank");
    if (devices() == 1) expect_unsupported(2, 0, "the same CUDA device");
    return;
  }
  expect_unsupported(1, -1, "need a CUDA device and its driver");
  expect_unsupported(2, -1, "need a CUDA device and its driver");
}

class NcclOnDevices : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (devices() == 0) GTEST_SKIP() << "there is no CUDA device";
  }
  static int ranks() { return std::min(devices(), 4); }
  SyncOptions options() const {
    return {.strategy = find_sync_way(GetParam()),
            .cycle = std::chrono::microseconds(300),
            .algorithm = SyncAlgorithm::nccl};
  }
};

INSTANTIATE_TEST_SUITE_P(Strategies, NcclOnDevices,
                         ::testing::Values("negotiate", "gs", "nbcs", "topo"),
                         [](const auto& one) { return one.param; });

TEST_P(NcclOnDevices, SumsTensorsOfTheHost) {
  run_ranks(ranks(), 0, [&](const auto& comm) {
    auto options = this->options();
    options.fusion_bytes = 100'000;
    SyncEngine engine(comm, options);
    EXPECT_THAT(engine.explain(), HasSubstr("CUDA device"));
    auto sums = sums_of_all_kinds(30'000);
    for (int step = 0; step < 3; ++step) {
      for (auto& sum : sums) sum.start(engine, comm->rank(), step, step % 2 == 1);
      for (auto& sum : sums) sum.expect(step, comm->size(), comm->size());
      engine.end_step();
    }
    engine.close();
  });
}

/// Memory of the current device, and a stream that writes it.
class DeviceTensor {
 public:
  explicit DeviceTensor(std::size_t bytes) : bytes_(bytes) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&memory_, std::max<std::size_t>(bytes, 1)), cudaSuccess);
  }
  ~DeviceTensor() {
    cudaFree(memory_);
    cudaStreamDestroy(stream_);
  }
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;

  /// Some time later, as far as the caller can tell.
  void write(const std::vector<std::byte>& numbers) {
    EXPECT_EQ(cudaMemcpyAsync(memory_, numbers.data(), bytes_, cudaMemcpyHostToDevice, stream_),
              cudaSuccess);
  }
  std::vector<std::byte> read() const {
    std::vector<std::byte> numbers(bytes_);
    EXPECT_EQ(cudaMemcpy(numbers.data(), memory_, bytes_, cudaMemcpyDeviceToHost), cudaSuccess);
    return numbers;
  }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_), bytes_}; }
  cudaStream_t stream() const { return stream_; }

 private:
  std::size_t bytes_;
  void* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

TEST_P(NcclOnDevices, SumsTensorsOfTheDeviceAfterTheirStream) {
  run_ranks(ranks(), 0, [&](const auto& comm) {
    ASSERT_EQ(cudaSetDevice(comm->rank()), cudaSuccess);
    auto options = this->options();
    options.fusion_bytes = 200'000;
    SyncEngine engine(comm, options);
    auto sums = sums_of_all_kinds(30'000);
    for (int step = 0; step < 3; ++step) {
      std::vector<std::unique_ptr<DeviceTensor> > tensors;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        auto& sum = sums[i];
        if (i % 3 == 0) {
          sum.start(engine, comm->rank(), step);
          tensors.push_back(nullptr);
          continue;
        }
        sum.in = test::numbers_of(sum.tensor, comm->rank(), step);
        auto& tensor = tensors.emplace_back(std::make_unique<DeviceTensor>(sum.in.size()));
        tensor->write(sum.in);
        sum.handle = engine.allreduce(sum.tensor, tensor->bytes(), tensor->bytes(), sum.reduction,
                                      {.stream = tensor->stream()});
      }
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i].handle.wait();
        if (tensors[i]) sums[i].out = tensors[i]->read();
        sums[i].expect(step, comm->size(), comm->size());
      }
      engine.end_step();
    }
    engine.close();
  });
}

TEST_P(NcclOnDevices, JoinsAndFailsAsOtherAlgorithmsDo) {
  run_ranks(ranks(), 0, [&](const auto& comm) {
    SyncEngine engine(comm, this->options());
    OneSum sum{.tensor = {.name = "t", .shape = {1000}}};
    sum.start(engine, comm->rank(), 0);
    sum.expect(0, comm->size(), comm->size());
    ASSERT_TRUE(engine.join().wait_for(std::chrono::seconds(60)));
    sum.start(engine, comm->rank(), 1);
    sum.expect(1, comm->size(), comm->size());
    comm->barrier();
    if (comm->rank() == 0) engine.fail(Error(ErrorKind::usage, "enough of this", ""));
    EXPECT_THROW(
        {
          for (int i = 0; i < 1000; ++i) {
            sum.start(engine, comm->rank(), 2);
            sum.handle.wait();
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          }
        },
        Error);
    comm->barrier();
  });
}

#endif

}  // namespace
}  // namespace forebay
