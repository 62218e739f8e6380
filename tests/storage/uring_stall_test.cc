// A read that never comes back, through the real kernel: the memory that it is to fill has no
// pages, and nobody provides them (userfaultfd), so the copy into it sleeps.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "forebay/error.hpp"
#include "storage/answers.hpp"
#include "storage/bulk_reader.hpp"
#include "storage/file_error.hpp"
#include "storage/uring_bulk_reader.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::size_t kBytes = 1 << 20;

/// Memory whose pages never come. Stays mapped for ever, as abandoned spans must.
class MemoryThatStalls {
 public:
  MemoryThatStalls() {
    address_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    descriptor_ = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
    uffdio_api api{.api = UFFD_API};
    uffdio_register range{};
    range.range = {reinterpret_cast<std::uintptr_t>(address_), kBytes};
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    works_ = descriptor_ >= 0 && ::ioctl(descriptor_, UFFDIO_API, &api) == 0 &&
             ::ioctl(descriptor_, UFFDIO_REGISTER, &range) == 0;
  }
  /// From now on pages are there.
  ~MemoryThatStalls() { ::close(descriptor_); }

  bool works() const { return works_; }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(address_), kBytes}; }

 private:
  void* address_ = nullptr;
  int descriptor_ = -1;
  bool works_ = false;
};

class StallTest : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    if (!memory_.works()) GTEST_SKIP() << "userfaultfd is not allowed here";
    if (GetParam() == Engine::uring && probe_uring() != 0) {
      GTEST_SKIP() << uring_refusal(probe_uring());
    }
    test::write_bytes(folder_.file("data"), test::counting_bytes(kBytes));
  }
  /// The error of a read that stalls after its first request.
  std::string message_of_reading(const BulkOptions& options) {
    reader_ = make_bulk_reader(open_file(folder_.file("data"), GetParam()), GetParam(), options);
    std::vector<std::byte> good(1000);
    const ReadRequest requests[] = {{0, good}, {0, memory_.bytes()}};
    try {
      reader_->read(requests, [](std::size_t) {});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  test::TemporaryFolder folder_;
  MemoryThatStalls memory_;
  std::unique_ptr<BulkReader> reader_;
};

INSTANTIATE_TEST_SUITE_P(Engines, StallTest, ::testing::Values(Engine::pread, Engine::uring),
                         [](const auto& engine) {
                           return engine.param == Engine::pread ? "pread" : "uring";
                         });

TEST_P(StallTest, EndsAtTheTimeout) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(message_of_reading({.depth = 4, .request_bytes = kBytes / 4, .timeout = 100ms}),
              HasSubstr("no answer from the file system for 0.1 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  // Where the kernel could not cancel the copy, the reader admits it and refuses to go on.
  if (reader_->abandoned()) {
    EXPECT_THROW(reader_->read({}, [](std::size_t) {}), Error);
  }
}

TEST_P(StallTest, WaitsLittleForWhatCannotBeCancelled) {
  constexpr auto kTimeout = 1s;  // a short one limits the cancelling too
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(message_of_reading({.depth = 4, .request_bytes = kBytes / 4, .timeout = kTimeout}),
              HasSubstr("no answer from the file system for 1 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kTimeout + kStopGrace);
}

// The kernel holds a thread back that has left requests of io_uring behind.
TEST_P(StallTest, NobodyWaitsForTheThreadThatHasGivenUp) {
  const auto begin = std::chrono::steady_clock::now();
  std::string message;
  with_answers({.each_read = 60s}, "test", {}, [&] {
    message = message_of_reading({.depth = 2, .timeout = 100ms});
    EXPECT_EQ(left_requests_here(), reader_->abandoned());
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_THAT(message, HasSubstr("no answer"));
}

TEST_P(StallTest, EndsSoonAfterAStop) {
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(50ms);
    stop.request_stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(message_of_reading({.depth = 2, .stop = stop.get_token()}), HasSubstr("stopped"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

}  // namespace
}  // namespace forebay
