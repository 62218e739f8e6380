// What every bulk reader must do alike: any list of requests, any failure of the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "forebay/error.hpp"
#include "storage/bulk_reader.hpp"
#include "storage/uring_bulk_reader.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::counting_bytes;
using test::error_from;
using test::TemporaryFolder;
using test::write_bytes;
using ::testing::HasSubstr;

constexpr std::size_t kFileBytes = 300'000;
constexpr std::byte kUntouched{0};

/// A list of ranges of the file, and memory for their bytes with a gap after each.
class RequestList {
 public:
  struct Range {
    std::uint64_t offset;
    std::size_t size;
    std::size_t begin;  // in the memory
  };

  void add(std::uint64_t offset, std::size_t size, std::size_t gap) {
    ranges_.push_back({offset, size, used_});
    used_ += size + gap;
  }
  std::vector<ReadRequest> requests() {
    memory_.assign(used_ + kAlignment, kUntouched);
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    base_ = (kAlignment - address % kAlignment) % kAlignment;
    std::vector<ReadRequest> list;
    for (const Range& range : ranges_) {
      list.push_back({range.offset, std::span(memory_).subspan(base_ + range.begin, range.size)});
    }
    return list;
  }
  bool holds(std::size_t i, std::span<const std::byte> file) const {
    const Range& range = ranges_[i];
    const auto got = std::span(memory_).subspan(base_ + range.begin, range.size);
    return std::ranges::equal(got, file.subspan(range.offset, range.size));
  }
  /// Nothing was written before, between and after the spans.
  bool gaps_are_untouched() const {
    std::vector<bool> covered(memory_.size(), false);
    for (const Range& range : ranges_) {
      std::fill_n(covered.begin() + static_cast<long>(base_ + range.begin), range.size, true);
    }
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if (!covered[i] && memory_[i] != kUntouched) return false;
    }
    return true;
  }
  std::size_t size() const { return ranges_.size(); }

 private:
  static constexpr std::size_t kAlignment = 4096;

  std::vector<Range> ranges_;
  std::size_t used_ = 0;
  std::size_t base_ = 0;
  std::vector<std::byte> memory_;
};

/// Overlapping, unsorted, empty, up to the end; page-aligned now and then.
RequestList random_list(std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  RequestList list;
  for (std::size_t i = below(60); i > 0; --i) {
    std::size_t offset = below(kFileBytes + 1);
    if (below(4) == 0) offset = offset / 4096 * 4096;
    const std::size_t limit =
        std::min(kFileBytes - offset, below(2) == 0 ? 50 : std::size_t{40'000});
    std::size_t size = below(limit + 1);
    if (below(8) == 0) size = std::min<std::size_t>(kFileBytes - offset, 40'000);
    const std::size_t aligned = (4096 - size % 4096) % 4096 + offset % 4096;
    list.add(offset, size, below(2) == 0 ? aligned : below(100));
  }
  return list;
}

class BulkReaderTest : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    if (GetParam() == Engine::uring && probe_uring() != 0)
      GTEST_SKIP() << uring_refusal(probe_uring());
    write_bytes(path_, bytes_);
    file_ = open_file(path_, GetParam());
  }
  std::unique_ptr<BulkReader> reader(const BulkOptions& options) {
    return make_bulk_reader(file_, GetParam(), options);
  }
  /// Reads `list` and expects every request done once, with the bytes of the file.
  void expect_exact(BulkReader& reader, RequestList& list) {
    const auto requests = list.requests();
    std::multiset<std::size_t> done;
    reader.read(requests, [&](std::size_t i) {
      done.insert(i);
      EXPECT_TRUE(list.holds(i, bytes_)) << "request " << i;
    });
    EXPECT_EQ(done.size(), list.size());
    EXPECT_EQ(std::set<std::size_t>(done.begin(), done.end()).size(), list.size());
    EXPECT_TRUE(list.gaps_are_untouched());
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.file("data");
  std::vector<std::byte> bytes_ = counting_bytes(kFileBytes);
  std::shared_ptr<const File> file_;
};

std::string engine_name(const ::testing::TestParamInfo<Engine>& engine) {
  constexpr std::array kNames{"mmap", "pread", "uring"};
  return kNames[static_cast<std::size_t>(engine.param)];
}

INSTANTIATE_TEST_SUITE_P(All, BulkReaderTest,
                         ::testing::Values(Engine::mmap, Engine::pread, Engine::uring),
                         engine_name);

TEST_P(BulkReaderTest, RandomListsAreReadExactlyAndNothingElseIsWritten) {
  std::mt19937 random(7);
  const std::uint64_t sizes[] = {0, 1000, 4096, 10'000, 65'536};
  for (const unsigned depth : {1U, 2U, 5U, 64U}) {
    for (const bool direct : {false, true}) {
      const auto bytes = sizes[random() % std::size(sizes)];
      const auto shared =
          reader({.depth = depth, .request_bytes = bytes, .direct = direct, .timeout = {}});
      for (int i = 0; i < test::long_cases(10); ++i) {
        RequestList list = random_list(random);
        expect_exact(*shared, list);
      }
    }
  }
}

TEST_P(BulkReaderTest, PiecesOfOneByteStillMakeTheWhole) {
  RequestList list;
  list.add(kFileBytes - 300, 300, 3);
  list.add(0, 100, 0);
  expect_exact(*reader({.depth = 3, .request_bytes = 1}), list);
}

TEST_P(BulkReaderTest, EmptyListsAndEmptyRequestsAreDoneAtOnce) {
  const auto empty = reader({});
  empty->read({}, [](std::size_t) { FAIL() << "there was no request"; });
  RequestList list;
  for (int i = 0; i < 3; ++i) list.add(kFileBytes * i, 0, 1);
  const auto requests = list.requests();
  int done = 0;
  empty->read(requests, [&](std::size_t) { ++done; });
  EXPECT_EQ(done, 3);
}

TEST_P(BulkReaderTest, ReadsPastTheEndNameTheFileAndItsEndAndLeaveTheReaderUsable) {
  const auto shared = reader({.depth = 4, .request_bytes = 4096});
  RequestList past;
  past.add(0, 10'000, 0);
  past.add(kFileBytes - 5'000, 5'001, 0);
  const auto requests = past.requests();
  const Error error = error_from([&] { shared->read(requests, [](std::size_t) {}); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_EQ(error.where().file, path_);
  EXPECT_THAT(error.what(), HasSubstr("ends at 300000"));
  EXPECT_FALSE(shared->abandoned());
  RequestList list;
  list.add(5, 50'000, 0);
  expect_exact(*shared, list);
}

TEST_P(BulkReaderTest, OffsetsNearTheLimitOfIntegersDoNotWrap) {
  const auto shared = reader({.depth = 2});
  std::vector<std::byte> out(50);
  const auto largest = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t offset : {largest, largest - 49, largest / 2, largest / 2 - 10}) {
    const ReadRequest request{offset, out};
    const Error error = error_from([&] { shared->read({&request, 1}, [](std::size_t) {}); });
    EXPECT_EQ(error.kind(), ErrorKind::io) << offset;
  }
}

TEST_P(BulkReaderTest, FileThatWasCutIsAnErrorAndOneThatGrewIsNot) {
  const auto shared = reader({.depth = 2, .request_bytes = 8192});
  std::filesystem::resize_file(path_, 100'000);
  std::vector<std::byte> out(kFileBytes);
  const ReadRequest request{0, out};
  EXPECT_EQ(error_from([&] {
              shared->read({&request, 1}, [](std::size_t) {});
            }).kind(),
            ErrorKind::io);
  std::filesystem::resize_file(path_, kFileBytes + 100);
  const ReadRequest grown{kFileBytes, std::span(out).first(100)};
  const auto fresh = make_bulk_reader(open_file(path_, GetParam()), GetParam(), {});
  std::filesystem::resize_file(path_, kFileBytes + 200);
  const ReadRequest later{kFileBytes + 100, std::span(out).first(100)};
  fresh->read({&grown, 1}, [](std::size_t) {});
  fresh->read({&later, 1}, [](std::size_t) {});
}

TEST_P(BulkReaderTest, WhatWasStartedIsThereWhenItIsFinished) {
  std::mt19937 random(8);
  const auto shared = reader({.depth = 3, .request_bytes = 4096});
  for (int i = 0; i < test::random_cases(10); ++i) {
    RequestList list = random_list(random);
    const auto requests = list.requests();
    std::multiset<std::size_t> done;
    shared->start(requests);
    for (int steps = static_cast<int>(random() % 4); steps > 0; --steps) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      shared->advance();
    }
    shared->finish([&](std::size_t index) { done.insert(index); });
    EXPECT_EQ(done.size(), list.size());
    for (std::size_t k = 0; k < list.size(); ++k) EXPECT_TRUE(list.holds(k, bytes_));
    EXPECT_TRUE(list.gaps_are_untouched());
  }
}

TEST_P(BulkReaderTest, AfterACancelNothingIsWrittenAndTheReaderGoesOn) {
  const auto shared = reader({.depth = 8, .request_bytes = 1000});
  for (int round = 0; round < test::random_cases(20); ++round) {
    RequestList list;
    for (std::size_t i = 0; i < 10; ++i) list.add(i * 30'000, 30'000, 0);
    auto requests = list.requests();
    shared->start(requests);
    shared->cancel();
    for (const ReadRequest& request : requests) std::ranges::fill(request.into, std::byte{77});
    RequestList next;
    next.add(5, 50'000, 0);
    expect_exact(*shared, next);
    for (const ReadRequest& request : requests) {
      EXPECT_EQ(std::ranges::count(request.into, std::byte{77}), 30'000);
    }
  }
  shared->cancel();  // nothing was started
}

TEST_P(BulkReaderTest, DestructionEndsWhatWasStarted) {
  for (int round = 0; round < test::random_cases(20); ++round) {
    std::vector<std::byte> memory(kFileBytes);
    const ReadRequest request{0, memory};
    reader({.depth = 4, .request_bytes = 500})->start({&request, 1});
  }
}

TEST_P(BulkReaderTest, WhatDoneThrowsLeavesReadAndNoRequestStaysBehind) {
  const auto shared = reader({.depth = 8, .request_bytes = 4096});
  for (int round = 0; round < 20; ++round) {
    RequestList list;
    for (std::size_t i = 0; i < 30; ++i) list.add(i * 9'000, 9'000, 0);
    const auto requests = list.requests();
    int calls = 0;
    const auto throws_once = [&](std::size_t) {
      if (++calls == 1 + round) throw std::runtime_error("enough");
    };
    EXPECT_THROW(shared->read(requests, throws_once), std::runtime_error);
    EXPECT_EQ(calls, 1 + round);
    // A request that was left in flight would now write into freed memory: the sanitizers watch.
  }
  RequestList list;
  list.add(0, kFileBytes, 0);
  expect_exact(*shared, list);
}

TEST_P(BulkReaderTest, CountsWhatItAskedFor) {
  const auto shared = reader({.depth = 2});
  RequestList list;
  list.add(0, 1000, 0);
  list.add(5000, 2000, 0);
  expect_exact(*shared, list);
  EXPECT_EQ(shared->counters().requests, 2U);
  EXPECT_EQ(shared->counters().bytes, 3000U);
}

TEST_P(BulkReaderTest, ClosesWhatItOpened) {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = open_files();
  for (const bool direct : {false, true}) {
    RequestList list;
    list.add(0, 20'000, 0);
    expect_exact(*reader({.depth = 4, .direct = direct}), list);
  }
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace forebay
