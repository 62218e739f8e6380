// Several files read as one, and more of them than are open at once.
#include "storage/joined_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <random>

#include "forebay/error.hpp"
#include "storage/bulk_reader.hpp"
#include "storage/file_pool.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::TemporaryFolder;
using ::testing::HasSubstr;

constexpr std::size_t kFiles = 40;
constexpr std::size_t kPooled = 3;

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

class JoinedFiles : public testing::TestWithParam<Engine> {
 protected:
  // Some are empty, and no two are equal.
  void SetUp() override {
    for (std::size_t i = 0; i < kFiles; ++i) {
      contents_.push_back(test::counting_bytes(i % 7 == 3 ? 0 : 3000 + 500 * i));
      for (std::byte& byte : contents_[i]) byte ^= static_cast<std::byte>(i * 5);
      test::write_bytes(path(i), contents_[i]);
    }
  }

  std::string path(std::size_t file) const { return folder_.file("f" + std::to_string(file)); }

  std::shared_ptr<const JoinedFile> join(bool pooled) const {
    const auto pool = std::make_shared<FilePool>(kPooled);
    std::vector<std::shared_ptr<const File>> parts;
    for (std::size_t i = 0; i < kFiles; ++i) {
      if (pooled) {
        parts.push_back(std::make_shared<PooledFile>(path(i), pool));
      } else {
        parts.push_back(open_file(path(i), GetParam()));
      }
    }
    return std::make_shared<JoinedFile>("all", std::move(parts));
  }

  std::unique_ptr<BulkReader> reader_of(const std::shared_ptr<const JoinedFile>& file,
                                        std::uint64_t request_bytes = 700) const {
    try {
      return make_bulk_reader(file, GetParam(), {.depth = 5, .request_bytes = request_bytes});
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::unsupported && GetParam() == Engine::uring) return nullptr;
      throw;
    }
  }

  void expect_right_bytes(const std::shared_ptr<const JoinedFile>& file) {
    const auto reader = reader_of(file);
    if (!reader) GTEST_SKIP() << "no io_uring here";
    std::mt19937 random(3);
    for (int round = 0; round < 20; ++round) {
      std::vector<std::pair<std::size_t, std::uint64_t>> places;
      std::vector<std::vector<std::byte>> memory;
      for (int i = 0; i < 30; ++i) {
        const std::size_t part = random() % kFiles;
        const std::uint64_t size = contents_[part].size();
        const std::uint64_t offset = size == 0 ? 0 : random() % size;
        places.emplace_back(part, offset);
        memory.emplace_back(size == 0 ? 0 : random() % (size - offset));
      }
      std::vector<ReadRequest> requests;
      for (std::size_t i = 0; i < places.size(); ++i) {
        requests.push_back({file->begin(places[i].first) + places[i].second, memory[i]});
      }
      reader->read(requests, [](std::size_t) {});
      for (std::size_t i = 0; i < places.size(); ++i) {
        const auto expected =
            std::span(contents_[places[i].first]).subspan(places[i].second, memory[i].size());
        ASSERT_TRUE(std::ranges::equal(memory[i], expected));
      }
    }
  }

  TemporaryFolder folder_;
  std::vector<std::vector<std::byte>> contents_;
};

TEST_P(JoinedFiles, GiveTheBytesOfTheirParts) { expect_right_bytes(join(false)); }

TEST_P(JoinedFiles, NeedFewDescriptorsWhenPooled) {
  if (GetParam() == Engine::mmap) GTEST_SKIP() << "what is mapped is open";
  const std::ptrdiff_t before = open_descriptors();
  const auto file = join(true);
  EXPECT_LE(open_descriptors() - before, static_cast<std::ptrdiff_t>(kPooled));
  expect_right_bytes(file);
}

TEST_P(JoinedFiles, NameThePartThatFails) {
  const auto file = join(false);
  const auto reader = reader_of(file);
  if (!reader) GTEST_SKIP() << "no io_uring here";
  std::filesystem::resize_file(path(20), 4096);
  std::vector<std::byte> memory(2000);
  const ReadRequest request{file->begin(20) + 8000, memory};
  try {
    reader->read({&request, 1}, [](std::size_t) {});
    FAIL() << "bytes that are not there were read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_THAT(error.what(), HasSubstr(path(20)));
    EXPECT_LT(error.where().offset.value_or(0), 20'000U) << "an offset in that file";
  }
}

TEST_P(JoinedFiles, NoticeAnotherFileUnderTheNameOfAPooledOne) {
  if (GetParam() == Engine::mmap) GTEST_SKIP() << "what is mapped is open";
  const auto file = join(true);  // file 0 is closed by now
  test::write_bytes(folder_.file("other"), contents_[0]);
  std::filesystem::rename(folder_.file("other"), path(0));
  std::vector<std::byte> memory(100);
  try {
    file->read(0, memory);
    FAIL() << "another file was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::changed);
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, JoinedFiles,
                         testing::Values(Engine::pread, Engine::mmap, Engine::uring),
                         [](const auto& tested) {
                           return tested.param == Engine::pread  ? "pread"
                                  : tested.param == Engine::mmap ? "mmap"
                                                                 : "uring";
                         });

}  // namespace
}  // namespace forebay
