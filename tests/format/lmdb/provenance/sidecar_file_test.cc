// Where sidecars are found and how they are written.
#include "format/lmdb/provenance/sidecar.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "forebay/error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::lmdb {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

/// A folder for the cache, in the environment for the length of a test.
class SidecarFile : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", folder_.file("cache").c_str(), 1); }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }

  DatasetPath dataset(const std::string& name = {}) const {
    return {.text = {},
            .data_file = folder_.file("data.mdb"),
            .lock_file = {},
            .environment = {},
            .name = name};
  }

  /// All that find_sidecar() offers, in its order.
  std::vector<FoundSidecar> candidates(std::uint64_t most_bytes) const {
    std::vector<FoundSidecar> all;
    const auto none = find_sidecar(
        dataset(), [] { return std::string("x"); }, most_bytes,
        [&](const FoundSidecar& found) {
          all.push_back(found);
          return false;
        });
    EXPECT_FALSE(none);
    return all;
  }

  test::TemporaryFolder folder_;
};

TEST_F(SidecarFile, LiesBesideTheDataOneForEachDatabase) {
  EXPECT_THAT(sidecar_path(dataset()), EndsWith("/data.mdb.forebay"));
  EXPECT_THAT(sidecar_path(dataset("train")), EndsWith("/data.mdb.train.forebay"));
  EXPECT_THAT(sidecar_path(dataset("a/b.c")), EndsWith("/data.mdb.a%2Fb%2Ec.forebay"));
  EXPECT_NE(sidecar_path(dataset(std::string(400, 'x'))),
            sidecar_path(dataset(std::string(401, 'x'))));
  EXPECT_LT(sidecar_path(dataset(std::string(400, '/'))).size(), folder_.path().size() + 250);
}

TEST_F(SidecarFile, TheCacheIsWhereTheStandardSays) {
  EXPECT_THAT(*user_cache_path("x"), HasSubstr(folder_.file("cache/forebay/")));
  EXPECT_NE(user_cache_path("x"), user_cache_path("y"));
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  ::setenv("HOME", folder_.path().c_str(), 1);
  EXPECT_THAT(*user_cache_path("x"), HasSubstr(folder_.file(".cache/forebay/")));
}

// Data sets of the same shape have one place there: what another program's test has kept would be
// found, and does not fit.
TEST_F(SidecarFile, TestsLeaveTheUsersCacheAlone) {
  ::unsetenv("XDG_CACHE_HOME");
  const test::TemporaryFolder folder;
  EXPECT_THAT(*user_cache_path("x"), testing::StartsWith("/dev/null/"));
}

TEST_F(SidecarFile, BesideTheDataComesFirst) {
  const auto near = test::counting_bytes(100), cached = test::counting_bytes(200);
  EXPECT_TRUE(candidates(1000).empty());
  write_whole_file(*user_cache_path("x"), cached);
  EXPECT_EQ(candidates(1000).at(0).bytes, cached);
  write_whole_file(sidecar_path(dataset()), near);
  const auto found = candidates(1000);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].bytes, near);
  EXPECT_EQ(found[1].bytes, cached);
}

TEST_F(SidecarFile, WhatIsTooLargeOrNoFileIsLeftOut) {
  write_whole_file(sidecar_path(dataset()), test::counting_bytes(1001));
  EXPECT_TRUE(candidates(1000).empty());
  std::filesystem::create_directories(*user_cache_path("x"));
  EXPECT_TRUE(candidates(1000).empty());
}

namespace {

std::string refusal_of(const std::string& path) {
  try {
    read_small_file(path, 1000);
  } catch (const Error& error) {
    return error.what();
  }
  return "read";
}

}  // namespace

TEST_F(SidecarFile, LinksAreFollowedOnlyWhereNobodyElseCanMakeThem) {
  const std::string shared = folder_.file("shared");
  std::filesystem::create_directories(shared);
  test::write_bytes(folder_.file("elsewhere"), test::counting_bytes(10));
  test::write_bytes(shared + "/file", test::counting_bytes(10));
  std::filesystem::create_symlink(folder_.file("elsewhere"), shared + "/link");
  using std::filesystem::perms;
  std::filesystem::permissions(shared, perms::owner_all);
  EXPECT_EQ(refusal_of(shared + "/link"), "read");
  for (const perms others : {perms::others_write, perms::group_write}) {
    std::filesystem::permissions(shared, perms::owner_all | others);
    EXPECT_EQ(refusal_of(shared + "/file"), "read");
    EXPECT_THAT(refusal_of(shared + "/link"),
                HasSubstr("it is a link, in a directory that others"));
  }
  // Writing replaces the link, and leaves alone what it leads to.
  write_whole_file(shared + "/link", test::counting_bytes(20));
  EXPECT_FALSE(std::filesystem::is_symlink(shared + "/link"));
  EXPECT_EQ(std::filesystem::file_size(folder_.file("elsewhere")), 10U);
}

TEST_F(SidecarFile, WhatBelongsToAnotherUserIsNotReadWhereOthersMayWrite) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs the right to give files away";
  const std::string shared = folder_.file("shared");
  std::filesystem::create_directories(shared);
  const std::string path = shared + "/file";
  test::write_bytes(path, test::counting_bytes(10));
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_EQ(refusal_of(path), "read");
  ASSERT_EQ(::chmod(shared.c_str(), 01777), 0);
  EXPECT_THAT(refusal_of(path), HasSubstr("it belongs to another user (65534)"));
  ASSERT_EQ(::chown(shared.c_str(), 65534, 65534), 0);  // who may do there as he likes
  EXPECT_EQ(refusal_of(path), "read");
}

TEST_F(SidecarFile, APipeIsNoFileToWaitFor) {
  const std::string path = folder_.file("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(refusal_of(path), HasSubstr("no regular file"));
}

TEST_F(SidecarFile, ACacheThatAnotherUserMayHaveMadeIsNotUsed) {
  const std::filesystem::path cache = folder_.file("cache");
  std::filesystem::create_directories(cache);
  std::filesystem::create_directories(folder_.file("theirs"));
  std::filesystem::create_directory_symlink(folder_.file("theirs"), cache / "forebay");
  EXPECT_TRUE(user_cache_path("x"));
  ASSERT_EQ(::chmod(cache.c_str(), 01777), 0);
  EXPECT_FALSE(user_cache_path("x"));
  std::filesystem::remove(cache / "forebay");
  // Its own is closed to others.
  std::filesystem::create_directory(cache / "forebay");
  ASSERT_EQ(::chmod((cache / "forebay").c_str(), 0777), 0);
  EXPECT_TRUE(user_cache_path("x"));
  EXPECT_EQ(std::filesystem::status(cache / "forebay").permissions() &
                (std::filesystem::perms::group_write | std::filesystem::perms::others_write),
            std::filesystem::perms::none);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown((cache / "forebay").c_str(), 65534, 65534), 0);
  EXPECT_FALSE(user_cache_path("x"));
}

TEST_F(SidecarFile, ACacheMayBeALinkToAFolderForNothingElse) {
  namespace fs = std::filesystem;
  const fs::path link = folder_.file("cache/forebay"), there = folder_.file("scratch");
  fs::create_directories(link.parent_path());
  const auto leads_to = [&](const fs::path& target) {
    fs::remove(link);
    fs::create_directory_symlink(target, link);
  };
  leads_to(there);
  EXPECT_FALSE(user_cache_path("x")) << "it leads nowhere";
  fs::create_directories(there);
  const std::string entry = (fs::canonical(there) / (hash_text("x") + ".forebay")).string();
  EXPECT_EQ(user_cache_path("x"), entry);
  write_whole_file(entry, test::counting_bytes(10));
  test::write_bytes(entry + ".12-0123456789abcdef.part", {});  // of one that was killed
  EXPECT_EQ(user_cache_path("x"), entry);
  ASSERT_EQ(::chmod(there.c_str(), 0775), 0);
  EXPECT_FALSE(user_cache_path("x")) << "others may write there";
  EXPECT_EQ(fs::status(there).permissions(), fs::perms(0775)) << "as it may be there for them";
  ASSERT_EQ(::chmod(there.c_str(), 0755), 0);
  EXPECT_EQ(user_cache_path("x"), entry);
  test::write_bytes((there / "passwd").string(), {});
  EXPECT_FALSE(user_cache_path("x")) << "it holds other files";
  leads_to("/etc");
  EXPECT_FALSE(user_cache_path("x")) << "whoever owns it";
  if (::geteuid() != 0) return;
  fs::remove(there / "passwd");
  leads_to(there);
  ASSERT_EQ(::lchown(link.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(user_cache_path("x")) << "another user has made the link";
  leads_to(there);
  ASSERT_EQ(::chown(there.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(user_cache_path("x")) << "it is another user's";
}

TEST_F(SidecarFile, TwoWritersAtOnceLeaveAWholeFile) {
  const std::string path = *user_cache_path("x");
  const auto one = test::counting_bytes(100'000), other = test::counting_bytes(90'000);
  const auto write = [&](const std::vector<std::byte>& bytes) {
    for (int i = 0; i < 30; ++i) write_whole_file(path, bytes);
  };
  std::thread first(write, one), second(write, other);
  for (int i = 0; i < 200; ++i) {
    const auto found = candidates(200'000);
    if (!found.empty()) {
      EXPECT_TRUE(found[0].bytes == one || found[0].bytes == other);
    }
  }
  first.join();
  second.join();
  const auto folder = std::filesystem::path(path).parent_path();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST_F(SidecarFile, APlaceThatCannotBeWrittenIsNamed) {
  test::write_bytes(folder_.file("file"), test::counting_bytes(1));
  try {
    write_whole_file(folder_.file("file/below.forebay"), test::counting_bytes(10));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_THAT(error.what(), HasSubstr("below.forebay"));
  }
}

}  // namespace
}  // namespace forebay::lmdb
