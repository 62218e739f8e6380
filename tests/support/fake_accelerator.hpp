// A device that is none, for tests of sums on devices: its memory is the host's, and its streams do
// one thing each time somebody asks whether they are idle.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "comm/nonblocking.hpp"
#include "forebay/error.hpp"
#include "sync/accelerator.hpp"

namespace forebay::test {

class FakeMoment final : public DeviceMoment {
 public:
  void pass() { *passed_ = true; }
  std::shared_ptr<std::atomic<bool>> passed() const { return passed_; }

 private:
  std::shared_ptr<std::atomic<bool>> passed_ = std::make_shared<std::atomic<bool>>(false);
};

class FakeStream final : public DeviceStream {
 public:
  FakeStream(std::unique_ptr<NonblockingCollectives> comm, std::size_t bytes)
      : comm_(std::move(comm)),
        there_(std::make_shared<std::vector<std::byte>>(bytes)),
        here_(bytes) {}

  std::span<std::byte> there() const override { return *there_; }
  std::span<std::byte> here() const override { return here_; }

  void wait_for(const DeviceMoment& moment) override {
    work_.emplace_back(
        [passed = dynamic_cast<const FakeMoment&>(moment).passed()] { return passed->load(); });
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    work_.emplace_back([=] {
      std::copy_n(from, bytes, to);
      return true;
    });
  }
  bool idle() override {
    if (!work_.empty() && work_.front()()) work_.pop_front();
    return work_.empty();
  }

  void reduce(std::size_t bytes, const DeviceReduction& what,
              const std::shared_ptr<std::atomic<bool>>& aborted) {
    work_.emplace_back([this, bytes, what, aborted] {
      if (*aborted) return true;
      const auto numbers = std::span(*there_).first(bytes);
      if (!reducing_) reducing_ = comm_->all_reduce({there_, numbers}, what.type, what.how);
      if (!reducing_->done()) return false;
      reducing_ = nullptr;
      if (what.mean) divide(what.type, numbers, static_cast<std::uint64_t>(comm_->size()));
      return true;
    });
  }

 private:
  std::unique_ptr<NonblockingCollectives> comm_;
  NonblockingCollectives::Operation reducing_;
  std::shared_ptr<std::vector<std::byte>> there_;
  mutable std::vector<std::byte> here_;
  std::deque<std::function<bool()>> work_;
};

class FakeAccelerator final : public Accelerator {
 public:
  /// `reductions`: how many of them work, before one fails.
  explicit FakeAccelerator(Communicator& comm, int reductions = 1'000'000)
      : comm_(comm), reductions_(reductions) {}

  std::unique_ptr<DeviceStream> stream(std::size_t bytes) override {
    return std::make_unique<FakeStream>(comm_.nonblocking(), bytes);
  }
  std::shared_ptr<const DeviceMoment> moment_of(void* /*stream*/) override {
    auto moment = std::make_shared<FakeMoment>();
    moment->pass();
    return moment;
  }
  void all_reduce(DeviceStream& stream, std::size_t bytes,
                  const DeviceReduction& reduction) override {
    if (issue_) throw Error(ErrorKind::usage, "the last reduction is not settled", "");
    if (*aborted_) throw Error(ErrorKind::communication, "sums have ended before", "");
    issue_ = [this, &stream, bytes, reduction] {
      dynamic_cast<FakeStream&>(stream).reduce(bytes, reduction, aborted_);
    };
    looks_ = 3;
  }
  /// As with NCCL, the stream has the reduction some time after the call.
  bool settled() override {
    if (!issue_) return true;
    if (--looks_ > 0) return false;
    if (reductions_-- == 0) throw Error(ErrorKind::communication, "the device is on fire", "");
    std::exchange(issue_, nullptr)();
    return true;
  }
  void copy_now(std::byte* to, const std::byte* from, std::size_t bytes) override {
    std::copy_n(from, bytes, to);
  }
  void abort() noexcept override { *aborted_ = true; }
  std::string describe() const override { return "a device that is none"; }

  bool aborted() const { return *aborted_; }

 private:
  Communicator& comm_;
  int reductions_;
  int looks_ = 0;
  std::function<void()> issue_;
  std::shared_ptr<std::atomic<bool>> aborted_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace forebay::test
