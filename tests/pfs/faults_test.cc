#include "pfs/faults.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "forebay/error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::pfs {
namespace {

class PfsFaults : public testing::Test {
 protected:
  PfsFaults() { test::write_bytes(folder_.file("data.mdb"), test::counting_bytes(10)); }

  std::uint64_t number() const {
    struct stat status {};
    ::stat(folder_.file("data.mdb").c_str(), &status);
    return status.st_ino;
  }
  ErrorKind kind_of(std::string_view line) {
    try {
      faults_.command(line);
    } catch (const Error& error) {
      return error.kind();
    }
    ADD_FAILURE() << "'" << line << "' was taken";
    return ErrorKind::io;
  }

  test::TemporaryFolder folder_;
  Faults faults_{folder_.path()};
};

TEST_F(PfsFaults, HitReadsThatCoverTheByte) {
  faults_.command("fail data.mdb 100");
  EXPECT_FALSE(faults_.fails(number(), 0, 100));
  EXPECT_TRUE(faults_.fails(number(), 0, 101));
  EXPECT_TRUE(faults_.fails(number(), 100, 1));
  EXPECT_FALSE(faults_.fails(number(), 101, 1000));
  EXPECT_FALSE(faults_.fails(number() + 1, 0, 1000));
  EXPECT_FALSE(faults_.stall(number(), 0, 1000));
}

TEST_F(PfsFaults, StallsSayWhereAndHowLong) {
  faults_.command("stall data.mdb 4KiB 1500ms");
  const auto stall = faults_.stall(number(), 4096, 4096);
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->offset, 4096);
  EXPECT_EQ(stall->duration, std::chrono::milliseconds(1500));
  EXPECT_FALSE(faults_.fails(number(), 4096, 4096));
}

TEST_F(PfsFaults, ShortReadsHalveUncachedReadsOnly) {
  EXPECT_EQ(faults_.allowed(1000, false), 1000);
  faults_.command("short on");
  EXPECT_EQ(faults_.allowed(1000, false), 500);
  EXPECT_EQ(faults_.allowed(1, false), 1);
  EXPECT_EQ(faults_.allowed(1000, true), 1000);
  faults_.command("short off");
  EXPECT_EQ(faults_.allowed(1000, false), 1000);
}

TEST_F(PfsFaults, ClearEndsAll) {
  faults_.command("fail data.mdb 0");
  faults_.command("stall data.mdb 0 1s");
  faults_.command("short on");
  faults_.command("clear");
  EXPECT_FALSE(faults_.fails(number(), 0, 10));
  EXPECT_FALSE(faults_.stall(number(), 0, 10));
  EXPECT_EQ(faults_.allowed(1000, false), 1000);
}

TEST_F(PfsFaults, UnknownWordsAndFilesAreRefused) {
  for (const char* line :
       {"", "fail", "fail data.mdb", "fail data.mdb 1 2", "fail data.mdb -1", "stall data.mdb 1",
        "stall data.mdb 1 5", "short", "short maybe", "clear now", "explode data.mdb 1"}) {
    EXPECT_EQ(kind_of(line), ErrorKind::usage) << line;
  }
  EXPECT_EQ(kind_of("fail other 1"), ErrorKind::not_found);
}

}  // namespace
}  // namespace forebay::pfs
