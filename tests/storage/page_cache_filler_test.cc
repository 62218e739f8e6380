// What is used in place comes into memory first: the right pages, and no others.
#include "storage/page_cache_filler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "storage/page_cache.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/page_cache.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kPages = 1000;

class PageCacheFillerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_bytes(path_, test::counting_bytes(kPages * kPage - 100));
    if (!test::bring_into_page_cache(path_)) GTEST_SKIP() << "the system does not tell";
    if (!test::drop_from_page_cache(path_)) GTEST_SKIP() << "the system keeps what it has";
    file_ = std::make_shared<MmapFile>(path_);
  }
  ReadRequest request(std::uint64_t offset, std::uint64_t length) const {
    const auto found = file_->map().subspan(offset, length);
    return {.offset = offset, .into = {const_cast<std::byte*>(found.data()), found.size()}};
  }
  std::uint64_t pages_there() const {
    std::uint64_t pages = 0;
    for (std::uint64_t page = 0; page < kPages; ++page) {
      pages += in_page_cache(*file_, page * kPage, 1) ? 1 : 0;
    }
    return pages;
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_.file("data");
  std::shared_ptr<MmapFile> file_;
};

TEST_F(PageCacheFillerTest, BringsWhatIsAskedForAndNothingElse) {
  PageCacheFiller filler(file_, {});
  const std::vector<ReadRequest> requests{request(40 * kPage, 50 * kPage), request(7, 1),
                                          request(500 * kPage + 4000, 200), request(300, 0),
                                          request(999 * kPage, kPage - 100)};
  std::vector<std::size_t> done;
  filler.start(requests);
  filler.finish([&done](std::size_t index) { done.push_back(index); });
  EXPECT_THAT(done, testing::ElementsAre(0, 1, 2, 3, 4));
  for (const ReadRequest& one : requests) {
    EXPECT_TRUE(in_page_cache(*file_, one.offset, one.into.size())) << one.offset;
  }
  EXPECT_EQ(pages_there(), 50U + 1 + 2 + 1);
  EXPECT_EQ(filler.counters().bytes, 50 * kPage + 1 + 200 + kPage - 100);
  const auto all = test::counting_bytes(kPages * kPage);
  const auto wanted = std::span(all).subspan(40 * kPage, 50 * kPage);
  EXPECT_TRUE(std::ranges::equal(requests[0].into, wanted));
}

TEST_F(PageCacheFillerTest, BringsAnyRequestsInAnyOrder) {
  PageCacheFiller filler(file_, {});
  std::mt19937_64 random(3);
  const std::uint64_t size = file_->size();
  for (int round = 0; round < test::long_cases(20); ++round) {
    test::drop_from_page_cache(path_);
    std::vector<ReadRequest> requests;
    for (std::uint64_t i = random() % 20; i > 0; --i) {
      const std::uint64_t offset = random() % size;
      requests.push_back(request(offset, random() % (size - offset + 1)));
    }
    filler.read(requests, [](std::size_t) {});
    for (const ReadRequest& one : requests) {
      ASSERT_TRUE(in_page_cache(*file_, one.offset, one.into.size()));
    }
  }
}

/// Files of a few megabytes are all asked for at once: this one is not.
TEST_F(PageCacheFillerTest, AsksForMoreWithinALargeRequest) {
  constexpr std::uint64_t kLarge = std::uint64_t{80} << 20;
  std::filesystem::resize_file(path_, kLarge);
  file_ = std::make_shared<MmapFile>(path_);
  PageCacheFiller filler(file_, {});
  const std::vector<ReadRequest> requests{request(0, kLarge)};
  filler.start(requests);
  EXPECT_LT(filler.counters().bytes, kLarge);
  filler.finish([](std::size_t) {});
  EXPECT_EQ(filler.counters().bytes, kLarge);
  EXPECT_TRUE(in_page_cache(*file_, 0, kLarge));
}

TEST_F(PageCacheFillerTest, AFileThatWasCutIsAnError) {
  PageCacheFiller filler(file_, {});
  const std::vector<ReadRequest> requests{request(10 * kPage, kPage)};
  for (const std::uint64_t end : {10 * kPage + 5, 10 * kPage, kPage}) {
    std::filesystem::resize_file(path_, end);
    const Error error = test::error_from([&] { filler.read(requests, [](std::size_t) {}); });
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(error.where().file, path_);
  }
}

TEST_F(PageCacheFillerTest, EndsWhenItIsAskedTo) {
  std::stop_source stop;
  PageCacheFiller filler(file_, stop.get_token());
  const std::vector<ReadRequest> requests{request(0, kPage)};
  filler.start(requests);
  stop.request_stop();
  EXPECT_EQ(test::error_from([&] { filler.finish([](std::size_t) {}); }).kind(),
            ErrorKind::cancelled);
}

TEST_F(PageCacheFillerTest, WhatWasCancelledIsNotWaitedFor) {
  PageCacheFiller filler(file_, {});
  const std::vector<ReadRequest> requests{request(0, kPage)};
  filler.start(requests);
  filler.cancel();
  filler.finish([](std::size_t) { ADD_FAILURE(); });
}

}  // namespace
}  // namespace forebay
