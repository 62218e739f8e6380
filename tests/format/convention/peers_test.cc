// Many processes that open one database together: the first one looks at it, and tells the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "format/registry.hpp"
#include "tests/support/lmdb_records.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::OracleRecord;

std::vector<OracleRecord> records_of(std::uint64_t count) {
  std::vector<OracleRecord> records;
  for (std::uint64_t i = 0; i < count; ++i) {
    records.push_back({test::numbered("", i, 8), std::string(500, 'x')});
  }
  return records;
}

/// One of two peers, which open one behind the other: what the first one tells is kept for the
/// second one.
class OneOfTwo final : public Peers {
 public:
  OneOfTwo(int rank, std::deque<std::string>& told) : rank_(rank), told_(told) {}

  int rank() const override { return rank_; }
  int size() const override { return 2; }
  void together(const std::function<void()>& step) override { step(); }
  std::string told_by(int, const std::string& bytes) override {
    if (rank_ == 0) return told_.emplace_back(bytes);
    std::string next = told_.front();
    told_.pop_front();
    return next;
  }
  PeerMemory share(std::uint64_t) override { return {}; }

 private:
  int rank_;
  std::deque<std::string>& told_;
};

std::vector<std::unique_ptr<DataSet>> open_by_two(const std::string& path) {
  std::deque<std::string> told;
  std::vector<std::unique_ptr<DataSet>> both;
  for (const int rank : {0, 1}) {
    OneOfTwo peer(rank, told);
    FormatOptions options;
    options.hold = false;
    both.push_back(open_data_set(path, options, peer));
  }
  EXPECT_TRUE(told.empty());
  return both;
}

TEST(OpenedByPeers, OnlyTheFirstOneLooksAtRecords) {
  const test::TemporaryFolder folder;
  test::write_records(folder.path(), records_of(3000));
  const auto both = open_by_two(folder.path());
  const auto asked = [](const DataSet& data) { return data.files()[0]->counters(); };
  EXPECT_GT(asked(*both[0]).requests, 4U);
  EXPECT_LE(asked(*both[1]).requests, 2U) << "more than its meta pages, twice";
  EXPECT_LE(asked(*both[1]).bytes, 16384U);
  EXPECT_EQ(both[0]->facts().fingerprint, both[1]->facts().fingerprint);
  EXPECT_EQ(both[0]->facts().notes, both[1]->facts().notes);
}

TEST(OpenedByPeers, AllFollowTheSameConvention) {
  const test::TemporaryFolder folder;
  std::vector<OracleRecord> records = records_of(30);
  records.push_back({"__len__", "30"});
  test::write_records(folder.path(), records);
  const auto both = open_by_two(folder.path());
  EXPECT_EQ(both[0]->facts().entries, 30U);
  EXPECT_EQ(both[1]->facts().entries, 30U);
}

}  // namespace
}  // namespace forebay
