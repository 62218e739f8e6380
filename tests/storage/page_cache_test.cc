// What the page cache has is told by the system; whoever cannot be told reads, which is right too.
#include "storage/page_cache.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "storage/pread_file.hpp"
#include "tests/support/page_cache.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kBytes = std::uint64_t{1} << 20;

class PageCacheTest : public ::testing::Test {
 protected:
  PageCacheTest() { test::write_bytes(path_, std::vector<std::byte>(kBytes, std::byte{7})); }

  test::TemporaryFolder folder_;
  std::string path_ = folder_.file("data");
};

TEST_F(PageCacheTest, TellsWhatIsThereAndWhatIsNot) {
  const auto file = open_file(path_, Engine::pread);
  std::vector<std::byte> all(kBytes);
  file->read(0, all);
  if (!in_page_cache(*file, 0, kBytes)) GTEST_SKIP() << "the system does not tell";
  EXPECT_TRUE(in_page_cache(*file, 4095, 2));
  EXPECT_FALSE(in_page_cache(*file, 0, kBytes + 1)) << "past the end there is nothing";
  EXPECT_FALSE(in_page_cache(*file, kBytes, 1));
  if (!test::drop_from_page_cache(path_)) GTEST_SKIP() << "the system keeps what it has";
  EXPECT_FALSE(in_page_cache(*file, 0, kBytes));
  EXPECT_FALSE(in_page_cache(*file, kBytes / 2, 1));
  EXPECT_TRUE(in_page_cache(*file, kBytes / 2, 0)) << "nothing is needed";
}

TEST_F(PageCacheTest, WhatIsOnNoFileSystemIsNotThere) {
  const std::vector<std::byte> bytes(100);
  const auto file = memory_file("a", bytes);
  EXPECT_FALSE(in_page_cache(*file, 0, 100));
  expect_reads(*file, Reads::scattered);
}

TEST_F(PageCacheTest, AdviceChangesNoBytes) {
  const auto file = open_file(path_, Engine::pread);
  expect_reads(*file, Reads::scattered);
  std::vector<std::byte> all(kBytes);
  file->read(0, all);
  EXPECT_EQ(all, std::vector<std::byte>(kBytes, std::byte{7}));
}

/// Pages of the file that are in the page cache.
std::uint64_t pages_there(const File& file) {
  std::uint64_t pages = 0;
  for (std::uint64_t at = 0; at < file.size(); at += 4096) pages += in_page_cache(file, at, 1);
  return pages;
}

// What was read for a look at the file leaves nothing behind that sets off reading ahead later.
TEST_F(PageCacheTest, ReadsAtRandomPlacesBringNothingElse) {
  if (!test::bring_into_page_cache(path_)) GTEST_SKIP() << "the system does not tell";
  if (!test::drop_from_page_cache(path_)) GTEST_SKIP() << "the system keeps what it has";
  std::vector<std::byte> page(4096);
  open_file(path_, Engine::pread)->read(0, page);
  const auto file = open_file(path_, Engine::pread);
  expect_reads(*file, Reads::scattered);
  for (const std::uint64_t at : {1U, 2U, 3U, 4U, 8U, 16U, 31U, 100U}) file->read(at * 4096, page);
  EXPECT_EQ(pages_there(*file), 9);
}

}  // namespace
}  // namespace forebay
