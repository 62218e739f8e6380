// Bulk reads of files that fail, lie or never answer.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "storage/bulk_reader.hpp"
#include "storage/failing_file.hpp"
#include "storage/uring_bulk_reader.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/stalled_file.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using namespace std::chrono_literals;
using test::counting_bytes;
using test::error_from;
using test::StalledFile;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Eight pages of a file, mapped with a ninth that does not exist: reading it fails.
class MappingPastTheEnd {
 public:
  explicit MappingPastTheEnd(std::size_t page) : page_(page) {
    test::write_bytes(folder_.file("pages"), counting_bytes(8 * page));
    const int fd = ::open(folder_.file("pages").c_str(), O_RDONLY);
    address_ = ::mmap(nullptr, 9 * page, PROT_READ, MAP_SHARED, fd, 0);
    ::close(fd);
  }
  ~MappingPastTheEnd() { ::munmap(address_, 9 * page_); }

  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(address_), 8 * page_};
  }

 private:
  test::TemporaryFolder folder_;
  std::size_t page_;
  void* address_ = nullptr;
};

class BulkFailureTest : public ::testing::Test {
 protected:
  void read_whole(BulkReader& reader) {
    const ReadRequest request{0, memory_};
    reader.read({&request, 1}, [](std::size_t) {});
  }
  Error error_of_reading(BulkReader& reader) {
    return error_from([&] { read_whole(reader); });
  }

  std::vector<std::byte> bytes_ = counting_bytes(100'000);
  std::vector<std::byte> memory_ = std::vector<std::byte>(bytes_.size());
  std::shared_ptr<const File> file_ = memory_file("memory", bytes_);
};

TEST_F(BulkFailureTest, PreadReportsDeviceErrorsShortReadsAndCuts) {
  for (const unsigned depth : {1U, 4U}) {
    const auto failing = std::make_shared<FailingFile>(file_);
    const auto reader =
        make_bulk_reader(failing, Engine::pread, {.depth = depth, .request_bytes = 1000});
    failing->cut_to(90'000);
    EXPECT_THAT(error_of_reading(*reader).what(), HasSubstr("ends at 90000"));
    failing->end_reads_at(60'500);
    EXPECT_THAT(error_of_reading(*reader).what(), HasSubstr("ends at 60500"));
    failing->fail_reads_at(30'000);
    const Error error = error_of_reading(*reader);
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(error.where().offset, 30'000U);
    EXPECT_EQ(error.where().file, "memory");
  }
}

TEST_F(BulkFailureTest, MmapReportsFaultsBeforeDone) {
  const auto failing = std::make_shared<FailingFile>(file_);
  const auto reader = make_bulk_reader(failing, Engine::mmap, {});
  EXPECT_NO_THROW(read_whole(*reader));
  failing->fault_map_at(50'000);
  const ReadRequest request{0, memory_};
  const Error error = error_from([&] {
    reader->read({&request, 1}, [](std::size_t) { FAIL() << "the bytes are not there"; });
  });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_EQ(error.where().offset, 50'000U);
}

TEST_F(BulkFailureTest, MmapRefusesAFileWithoutMapping) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder.file("data"), bytes_);
  const auto file = open_file(folder.file("data"), Engine::pread);
  const Error error = error_from([&] { make_bulk_reader(file, Engine::mmap, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("--engine pread"));
}

// /proc/self/mem is a file with holes that cannot be read: a real EIO from a real descriptor.
TEST_F(BulkFailureTest, ErrorsOfTheKernelNameFileAndOffset) {
  constexpr std::size_t kPage = 4096;
  const MappingPastTheEnd memory(kPage);
  const auto begin = reinterpret_cast<std::uint64_t>(memory.bytes().data());
  const auto file = open_file("/proc/self/mem", Engine::pread);
  for (const Engine engine : {Engine::pread, Engine::uring}) {
    if (engine == Engine::uring && probe_uring() != 0) continue;
    const auto reader = make_bulk_reader(file, engine, {.depth = 4, .request_bytes = kPage});
    std::vector<std::byte> out(9 * kPage);
    const ReadRequest good{begin, std::span(out).first(8 * kPage)};
    const ReadRequest bad{begin + 100, std::span(out).first(8 * kPage)};
    reader->read({&good, 1}, [](std::size_t) {});
    EXPECT_TRUE(std::ranges::equal(memory.bytes(), good.into));
    const Error error = error_from([&] { reader->read({&bad, 1}, [](std::size_t) {}); });
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(error.where().file, "/proc/self/mem");
    EXPECT_EQ(error.where().offset, begin + 8 * kPage);
    EXPECT_FALSE(reader->abandoned());
    reader->read({&good, 1}, [](std::size_t) {});
  }
}

TEST_F(BulkFailureTest, DirectReadsThatAreRefusedGoThroughThePageCacheAndTheLogSaysSoOnce) {
  if (probe_uring() != 0) GTEST_SKIP() << uring_refusal(probe_uring());
  constexpr std::size_t kPage = 4096;
  const MappingPastTheEnd memory(kPage);
  const auto file = open_file("/proc/self/mem", Engine::uring);  // has no O_DIRECT
  std::vector<std::string> lines;
  set_log_hook([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  const auto reader = make_bulk_reader(file, Engine::uring, {.direct = true});
  std::vector<std::byte> out(8 * kPage);
  const ReadRequest request{reinterpret_cast<std::uint64_t>(memory.bytes().data()), out};
  for (int i = 0; i < 3; ++i) reader->read({&request, 1}, [](std::size_t) {});
  set_log_hook({});
  EXPECT_TRUE(std::ranges::equal(memory.bytes(), out));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], AllOf(HasSubstr("/proc/self/mem"), HasSubstr("O_DIRECT is refused")));
  EXPECT_THAT(reader->describe(), Not(HasSubstr("past the page cache")));
}

TEST_F(BulkFailureTest, ChoiceOfTheEngineNamesTheFileSystem) {
  const auto works = [] { return 0; };
  const test::TemporaryFolder folder;
  test::write_bytes(folder.file("data"), bytes_);
  const auto here = open_file(folder.file("data"), Engine::mmap);
  const EngineChoice choice = choose_engine(*here, false, works);
  EXPECT_EQ(choice.engine, here->is_local() ? Engine::pread : Engine::uring);
  if (here->is_local() && choice.reason.find("tmpfs") == std::string::npos) {
    EXPECT_EQ(choose_engine(*here, true, works).engine, Engine::uring) << "scattered";
    const auto refused = [] { return EPERM; };
    EXPECT_EQ(choose_engine(*here, true, refused).engine, Engine::pread);
  }
  const auto elsewhere = open_file("/proc/self/mem", Engine::pread);
  EXPECT_FALSE(elsewhere->is_local());
  EXPECT_EQ(choose_engine(*elsewhere, false, works).engine, Engine::uring);
  EXPECT_THAT(choose_engine(*elsewhere, false, works).reason, HasSubstr("proc"));
}

TEST_F(BulkFailureTest, WithoutIoUringItIsRefusedIfAskedForAndReplacedIfNot) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder.file("data"), bytes_);
  const auto file = open_file(folder.file("data"), Engine::uring);
  for (const int reason : {EPERM, ENOSYS, ENOMEM}) {
    const auto probe = [&] { return reason; };
    const Error error = error_from([&] { make_uring_reader(file, {}, probe); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("io_uring"), HasSubstr("--engine pread")));
    const EngineChoice choice =
        choose_engine(*open_file("/proc/self/mem", Engine::pread), false, probe);
    EXPECT_EQ(choice.engine, Engine::pread);
    EXPECT_THAT(choice.reason, HasSubstr("io_uring is not available"));
  }
  EXPECT_EQ(choose_engine(*file_).engine, Engine::pread);
}

TEST_F(BulkFailureTest, UringRefusesAFileInMemoryAndNamesTheOtherEngine) {
  const Error error = error_from([&] { make_bulk_reader(file_, Engine::uring, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("--engine pread"));
}

TEST_F(BulkFailureTest, StalledReadEndsAtTheTimeoutAndTheMemoryIsGivenUp) {
  for (const unsigned depth : {1U, 4U}) {
    const auto stalled = std::make_shared<StalledFile>(file_, 50'500);
    auto reader = make_bulk_reader(stalled, Engine::pread,
                                   {.depth = depth, .request_bytes = 1000, .timeout = 500ms});
    const Error error = error_of_reading(*reader);
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(error.where().offset, 50'000U);
    EXPECT_THAT(error.what(), HasSubstr("no answer from the file system for 0.5 s"));
    EXPECT_TRUE(reader->abandoned());
    EXPECT_THAT(error_of_reading(*reader).what(), HasSubstr("earlier read"));
    reader.reset();  // does not wait for the thread that is stuck
    stalled->release();
    // The late thread still writes into memory_, and drops its share of the file when it is done.
    while (stalled.use_count() > 1) std::this_thread::sleep_for(1ms);
  }
}

/// All ten take longer than the limit, and each far less.
TEST_F(BulkFailureTest, SlowButSteadyAnswersAreNoStall) {
  class SlowFile final : public File {
   public:
    explicit SlowFile(std::shared_ptr<const File> inner) : inner_(std::move(inner)) {}
    void read(std::uint64_t offset, std::span<std::byte> out) const override {
      std::this_thread::sleep_for(60ms);
      inner_->read(offset, out);
    }
    const std::string& path() const override { return inner_->path(); }
    std::uint64_t size() const override { return inner_->size(); }
    std::span<const std::byte> map() const override { return {}; }
    void check() const override {}
    FileFingerprint fingerprint() const override { return {}; }
    FileCounters counters() const override { return {}; }

   private:
    std::shared_ptr<const File> inner_;
  };
  const auto reader = make_bulk_reader(std::make_shared<SlowFile>(file_), Engine::pread,
                                       {.depth = 1, .request_bytes = 10'000, .timeout = 500ms});
  EXPECT_NO_THROW(read_whole(*reader));
  EXPECT_EQ(memory_, bytes_);
}

TEST_F(BulkFailureTest, StopEndsAReadThatWaits) {
  const auto stalled = std::make_shared<StalledFile>(file_, 50'500);
  std::stop_source stop;
  const auto reader = make_bulk_reader(
      stalled, Engine::pread, {.depth = 2, .request_bytes = 1000, .stop = stop.get_token()});
  std::jthread stopper([&] {
    std::this_thread::sleep_for(50ms);
    stop.request_stop();
    std::this_thread::sleep_for(50ms);
    stalled->release();  // within the grace: nothing is lost
  });
  EXPECT_EQ(error_of_reading(*reader).kind(), ErrorKind::cancelled);
  EXPECT_FALSE(reader->abandoned());
}

TEST_F(BulkFailureTest, TimeoutDuringTheEndOfAnotherErrorIsReportedToo) {
  const auto failing = std::make_shared<FailingFile>(file_);
  failing->fail_reads_at(99'999);
  const auto stalled = std::make_shared<StalledFile>(failing, 500);
  auto reader = make_bulk_reader(stalled, Engine::pread,
                                 {.depth = 2, .request_bytes = 1000, .timeout = 50ms});
  const ReadRequest requests[] = {{0, std::span(memory_).first(1000)},
                                  {99'000, std::span(memory_).last(1000)}};
  const Error error = error_from([&] { reader->read(requests, [](std::size_t) {}); });
  EXPECT_TRUE(reader->abandoned());
  EXPECT_EQ(error.kind(), ErrorKind::io);
  reader.reset();
  stalled->release();
  while (stalled.use_count() > 1) std::this_thread::sleep_for(1ms);
}

}  // namespace
}  // namespace forebay
