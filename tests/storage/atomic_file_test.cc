// A file is there whole or not at all, also when its writer is killed.
#include "storage/atomic_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "forebay/error.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(AtomicFile, AppearsWholeAndReplacesWhatWasThere) {
  const test::TemporaryFolder folder;
  for (const std::string text : {"first", "second, and longer", "3"}) {
    AtomicFile file(folder.file("data"));
    file.write(std::as_bytes(std::span(text)));
    file.commit();
    EXPECT_EQ(content_of(folder.file("data")), text);
  }
  EXPECT_THAT(names_in(folder.path()), testing::ElementsAre("data"));
}

TEST(AtomicFile, LeavesNothingWhenItIsGivenUpOrItsWriterIsKilled) {
  const test::TemporaryFolder folder;
  {
    AtomicFile file(folder.file("data"));
    file.write(std::as_bytes(std::span("abc")));
  }
  EXPECT_THAT(names_in(folder.path()), testing::IsEmpty());
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile file(folder.file("data"));
    file.write(std::as_bytes(std::span("abc")));
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(names_in(folder.path()), testing::IsEmpty());
}

TEST(AtomicFile, SaysWhereItCannotBeMade) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("none") + "/data";
  EXPECT_THAT(test::error_from([&] { AtomicFile file(path); }).what(), testing::HasSubstr(path));
}

}  // namespace
}  // namespace forebay
