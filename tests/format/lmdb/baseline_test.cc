// The baseline reads through liblmdb's own mapping: what happens to the file is an error, not the
// end of the process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "format/record_source.hpp"
#include "tests/format/lmdb/every_database.hpp"
#include "tests/format/lmdb/file_surgery.hpp"

namespace forebay::lmdb {
namespace {

constexpr std::uint64_t kRecords = 2000;

class Baseline : public testing::Test {
 protected:
  Baseline() { test::LmdbBuilder().in_order(kRecords).values(500).build(directory_.path()); }

  std::string data() const { return directory_.file("data.mdb"); }

  void take_lock_file_away() const { std::filesystem::remove(directory_.file("lock.mdb")); }

  /// Page number `page` of the open file becomes zeros.
  void zero_page(std::uint64_t page) const {
    std::fstream file(data(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(page * 4096));
    file.write(std::string(4096, '\0').data(), 4096);
  }

  Error error_of_reading(RecordSource& source) const {
    try {
      source.read(kRecords - 10, [](const Record&) {});
      source.check_unchanged();
    } catch (const Error& error) {
      return error;
    }
    return {ErrorKind::usage, "no error"};
  }

  test::TemporaryFolder directory_;
};

TEST_F(Baseline, AFileThatIsCutIsNamedAndEndsNoProcess) {
  const auto source = open_records(directory_.path(), SourceEngine::liblmdb);
  source->read(10, [](const Record&) {});
  std::filesystem::resize_file(data(), 20 * 4096);
  const Error error = error_of_reading(*source);
  EXPECT_EQ(error.kind(), ErrorKind::io) << error.what();
  EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr(data() + ": offset 819"),
                                           testing::HasSubstr("cut while it was open")));
  EXPECT_THROW(open_records(directory_.path(), SourceEngine::liblmdb), Error) << "still open";
}

TEST_F(Baseline, TheSameHoldsWhereNothingIsLocked) {
  take_lock_file_away();
  const auto source = open_records(directory_.path(), SourceEngine::liblmdb);
  std::filesystem::resize_file(data(), 20 * 4096);
  EXPECT_EQ(error_of_reading(*source).kind(), ErrorKind::io);
}

TEST_F(Baseline, ALockFileThatIsCutEndsNoProcess) {
  const auto source = open_records(directory_.path(), SourceEngine::liblmdb);
  std::filesystem::resize_file(directory_.file("lock.mdb"), 0);
  source->read(kRecords, [](const Record&) {});
  source->check_unchanged();
}

TEST_F(Baseline, APageThatLiblmdbDoesNotExpectIsAnErrorInsteadOfAnAbort) {
  const auto source = open_records(directory_.path(), SourceEngine::liblmdb);
  source->read(10, [](const Record&) {});
  FileSurgery whole(test::LmdbBuilder().in_order(kRecords).values(500));
  for (std::uint64_t page = whole.first_leaf() + 40; page < whole.first_leaf() + 80; ++page) {
    zero_page(page);
  }
  const Error error = error_of_reading(*source);
  EXPECT_THAT(error.kind(), testing::AnyOf(ErrorKind::corrupt, ErrorKind::changed)) << error.what();
}

TEST_F(Baseline, AValueThatLeavesTheFileIsRefused) {
  FileSurgery file(test::LmdbBuilder().in_order(kRecords).values(500));
  file.set(file.node(file.first_leaf(), 3) + 2, std::uint16_t{0x4000});  // 1 GiB more
  file.write_to(data());
  take_lock_file_away();
  const auto source = open_records(directory_.path(), SourceEngine::liblmdb);
  const Error error = error_of_reading(*source);
  EXPECT_EQ(error.kind(), ErrorKind::corrupt) << error.what();
  EXPECT_THAT(error.what(), testing::HasSubstr("sample 3"));
}

}  // namespace
}  // namespace forebay::lmdb
