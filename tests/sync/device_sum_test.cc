// Sums on devices, without one: what moves when, and from where to where.
#include <gtest/gtest.h>

#include "sync/buffered_line.hpp"
#include "tests/support/fake_accelerator.hpp"
#include "tests/support/summation_contract.hpp"
#include "tests/support/sync_contract.hpp"

namespace forebay {
namespace {

using test::FakeAccelerator;

SummationOptions on(std::shared_ptr<Accelerator> accelerator, std::size_t largest) {
  return {
      .algorithm = SyncAlgorithm::nccl, .largest = largest, .accelerator = std::move(accelerator)};
}

TEST(DeviceSum, IsRightForAllTypesAndLayouts) {
  constexpr std::size_t kLengths[] = {0, 1, 17, 5000};
  for (const auto& [ranks, ranks_per_node] : {std::pair(1, 0), std::pair(3, 0), std::pair(5, 2)}) {
    run_ranks(ranks, ranks_per_node, [&](const std::shared_ptr<Communicator>& comm) {
      auto options = on(std::make_shared<FakeAccelerator>(*comm), std::size_t{1} << 20);
      for (const unsigned lanes : {1U, 3U}) {
        options.lanes = lanes;
        test::check_sums(*comm, options, kLengths);
      }
    });
  }
}

TEST(DeviceSum, RefusesWhatDevicesCannotDo) {
  const auto comm = self_communicator();
  auto options = on(std::make_shared<FakeAccelerator>(*comm), 1000);
  options.deterministic = true;
  EXPECT_THROW(Summations(*comm, options), Error);
  options.deterministic = false;
  options.wire = WireFormat::float16;
  EXPECT_THROW(Summations(*comm, options), Error);
}

TEST(DeviceSum, SumsOfTheHostRefuseMemoryOfDevices) {
  const auto comm = self_communicator();
  Summations sums(*comm, {.algorithm = SyncAlgorithm::direct, .largest = 1000});
  EXPECT_EQ(sums.on_device(), nullptr);
  sums.lane(0).begin(TensorType::float32, Combination::sum, 4);
  EXPECT_THROW(sums.lane(0).put(0, std::vector<std::byte>(4), test::FakeMoment()), Error);
}

/// Allreduces of a line, with tensors here or on the device.
class Tensors {
 public:
  Tensors(Communicator& comm, Reduction reduction, std::vector<std::uint64_t> lengths)
      : comm_(comm), reduction_(reduction) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const TensorSpec spec{.name = "t" + std::to_string(i), .shape = {lengths[i]}};
      in_.push_back(test::numbers_of(spec, comm.rank(), 0));
      out_.emplace_back(in_.back().size());
      specs_.push_back(spec);
    }
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      requests_.push_back(
          std::make_shared<Request>(Request{.tensor = specs_[i],
                                            .reduction = reduction,
                                            .in = in_[i],
                                            .out = out_[i],
                                            .state = std::make_shared<SyncHandle::State>()}));
    }
  }

  void put_on_device(std::size_t tensor, std::shared_ptr<const DeviceMoment> ready) {
    requests_[tensor]->ready = std::move(ready);
  }
  Transfer transfer() const {
    Transfer transfer{.reduction = reduction_};
    for (const auto& request : requests_) {
      transfer.parts.push_back({request, request->tensor.elements()});
    }
    return transfer;
  }
  bool done() const {
    return std::ranges::all_of(requests_, [](const auto& one) { return one->state->done(); });
  }
  void expect() const {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      test::expect_reduced(specs_[i], reduction_, out_[i], 0, comm_.size(), comm_.size());
    }
  }
  std::vector<std::byte>& in(std::size_t tensor) { return in_[tensor]; }
  const std::vector<std::byte>& out(std::size_t tensor) const { return out_[tensor]; }

 private:
  Communicator& comm_;
  Reduction reduction_;
  std::vector<TensorSpec> specs_;
  std::vector<std::vector<std::byte>> in_;
  std::vector<std::vector<std::byte>> out_;
  std::vector<std::shared_ptr<Request>> requests_;
};

template <typename Done>
void step_until(BufferedLine& line, Done done) {
  test::poll_until([&] {
    test::rest(line.step());
    return done();
  });
}

// Also in pieces, whose ends cut tensors.
TEST(DeviceSum, TensorsLieHereOrThereAsEachRankLikes) {
  run_ranks(3, 0, [](const std::shared_ptr<Communicator>& comm) {
    const auto device = std::make_shared<FakeAccelerator>(*comm);
    for (const std::size_t largest : {std::size_t{1} << 20, std::size_t{1000}}) {
      SyncStatistics statistics;
      BufferedLine line(*comm, on(device, largest), nullptr, statistics);
      for (const Reduction reduction : test::kAllReductions) {
        Tensors tensors(*comm, reduction, {100, 1, 700, 0, 33});
        for (std::size_t i = 0; i < 5; ++i) {
          if ((i + static_cast<std::size_t>(comm->rank())) % 2 == 0) {
            tensors.put_on_device(i, device->moment_of(nullptr));
          }
        }
        line.start(tensors.transfer());
        step_until(line, [&] { return tensors.done(); });
        tensors.expect();
      }
      comm->barrier();
    }
  });
}

TEST(DeviceSum, ReadsTensorsWhenTheirStreamHasWrittenThem) {
  const auto comm = self_communicator();
  const auto device = std::make_shared<FakeAccelerator>(*comm);
  SyncStatistics statistics;
  BufferedLine line(*comm, on(device, 1000), nullptr, statistics);
  const auto moment = std::make_shared<test::FakeMoment>();
  Tensors tensors(*comm, Reduction::sum, {10});
  const auto numbers = std::exchange(tensors.in(0), std::vector<std::byte>(40));
  auto transfer = tensors.transfer();
  transfer.parts[0].request->in = tensors.in(0);
  tensors.put_on_device(0, moment);
  line.start(transfer);
  for (int i = 0; i < 50; ++i) line.step();
  EXPECT_FALSE(tensors.done());
  std::ranges::copy(numbers, tensors.in(0).begin());
  moment->pass();
  step_until(line, [&] { return tensors.done(); });
  tensors.expect();
}

TEST(DeviceSum, WhatALineHoldsIsUntouchedAndComesLater) {
  run_ranks(2, 0, [](const std::shared_ptr<Communicator>& comm) {
    const auto device = std::make_shared<FakeAccelerator>(*comm);
    SyncStatistics statistics;
    BufferedLine line(*comm, on(device, 400), nullptr, statistics);
    std::vector<Tensors> tensors;
    tensors.reserve(2);
    for (int i = 0; i < 2; ++i) {
      auto& one = tensors.emplace_back(*comm, Reduction::mean, std::vector<std::uint64_t>{90, 70});
      one.put_on_device(1, device->moment_of(nullptr));
    }
    line.hold();
    for (auto& one : tensors) line.start(one.transfer());
    step_until(line, [&] { return line.complete() == 2; });
    const std::vector<std::byte> nothing(280);
    for (auto& one : tensors) EXPECT_EQ(one.out(1), nothing);
    const TransferLine::Number without[] = {1};
    EXPECT_EQ(line.release(without).size(), 2U);
    EXPECT_TRUE(tensors[0].done());
    tensors[0].expect();
    EXPECT_FALSE(tensors[1].done());
    EXPECT_EQ(tensors[1].out(1), nothing);
    comm->barrier();
  });
}

TEST(DeviceSum, AFailureOfTheDeviceEndsSums) {
  run_ranks(2, 0, [](const std::shared_ptr<Communicator>& comm) {
    const auto device = std::make_shared<FakeAccelerator>(*comm, 1);
    SyncStatistics statistics;
    BufferedLine line(*comm, on(device, 1000), nullptr, statistics);
    Tensors first(*comm, Reduction::sum, {10});
    line.start(first.transfer());
    step_until(line, [&] { return first.done(); });
    Tensors second(*comm, Reduction::sum, {10});
    line.start(second.transfer());
    EXPECT_THROW(step_until(line, [&] { return second.done(); }), Error);
    line.give_up();
    EXPECT_TRUE(device->aborted());
    EXPECT_FALSE(second.done());
    comm->barrier();
  });
}

}  // namespace
}  // namespace forebay
