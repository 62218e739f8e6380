// The read loop against an uncooperative system, and the file that fails on demand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "forebay/error.hpp"
#include "storage/failing_file.hpp"
#include "storage/read_fully.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::counting_bytes;
using ::testing::HasSubstr;

constexpr std::size_t kPage = 4096;

TEST(ReadFully, ShortCountsAndInterruptionsAreInvisible) {
  const auto source = counting_bytes(1000);
  std::vector<std::byte> out(900);
  int calls = 0;
  const ReadResult result =
      read_fully(50, out, [&](std::byte* bytes, std::size_t count, std::uint64_t offset) -> long {
        if (++calls % 3 == 0) {
          errno = EINTR;
          return -1;
        }
        const std::size_t some = std::min<std::size_t>(count, 7);
        std::copy_n(source.begin() + static_cast<long>(offset), some, bytes);
        return static_cast<long>(some);
      });
  EXPECT_EQ(result.filled, 900U);
  EXPECT_EQ(result.error, 0);
  EXPECT_EQ(result.requests, (900U + 6) / 7);
  EXPECT_TRUE(std::equal(out.begin(), out.end(), source.begin() + 50));
}

TEST(ReadFully, ErrorAndEndAreToldApart) {
  std::vector<std::byte> out(10);
  const auto fails = [](std::byte*, std::size_t, std::uint64_t) -> long {
    errno = EIO;
    return -1;
  };
  EXPECT_EQ(read_fully(0, out, fails).error, EIO);
  const ReadResult end =
      read_fully(0, out, [](std::byte*, std::size_t, std::uint64_t) -> long { return 0; });
  EXPECT_EQ(end.error, 0);
  EXPECT_EQ(end.filled, 0U);
}

class FailingFileTest : public ::testing::Test {
 protected:
  std::string message_of_read(std::uint64_t offset, std::size_t count) {
    std::vector<std::byte> out(count);
    try {
      file_.read(offset, out);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::io);
      return error.what();
    }
    return "";
  }

  FailingFile file_{memory_file("memory", counting_bytes(4 * kPage))};
};

TEST_F(FailingFileTest, IsTransparentAtFirst) {
  EXPECT_EQ(message_of_read(0, 4 * kPage), "");
  EXPECT_EQ(file_.size(), 4 * kPage);
  EXPECT_EQ(file_.map().size(), 4 * kPage);
  file_.check();
}

TEST_F(FailingFileTest, DeviceErrorHitsOnlyReadsThatCoverIt) {
  file_.fail_reads_at(5000);
  EXPECT_EQ(message_of_read(0, 5000), "");
  EXPECT_EQ(message_of_read(5001, 100), "");
  EXPECT_THAT(message_of_read(4999, 2), HasSubstr("offset 5000"));
}

TEST_F(FailingFileTest, ShortReadDespiteThePromisedSize) {
  file_.end_reads_at(100);
  EXPECT_EQ(file_.size(), 4 * kPage);
  EXPECT_EQ(message_of_read(0, 100), "");
  EXPECT_THAT(message_of_read(0, 101), HasSubstr("ends at 100"));
  EXPECT_THAT(message_of_read(200, 1), HasSubstr("ends at 100"));
}

TEST_F(FailingFileTest, CutShrinksAndFaults) {
  const FileFingerprint before = file_.fingerprint();
  file_.cut_to(kPage + 10);
  EXPECT_EQ(file_.size(), kPage + 10);
  EXPECT_NE(file_.fingerprint(), before);
  EXPECT_THAT(message_of_read(kPage, 11), HasSubstr("ends at"));
  EXPECT_EQ(file_.map()[kPage + 9], counting_bytes(4 * kPage)[kPage + 9]);
  EXPECT_EQ(file_.map()[kPage + 10], std::byte{0});
  EXPECT_THROW(file_.check(), Error);
}

TEST_F(FailingFileTest, FaultZeroesTheRestOfTheMapping) {
  file_.fault_map_at(kPage + 10);
  EXPECT_NE(file_.map()[kPage - 1], std::byte{0});
  EXPECT_EQ(file_.map()[kPage], std::byte{0});
  EXPECT_THROW(file_.check(), Error);
}

}  // namespace
}  // namespace forebay
