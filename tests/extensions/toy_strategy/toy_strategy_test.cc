// A strategy that Forebay does not know: each sample is a read of its own. It is a PieceReader and
// a row of the table of strategies; options, text forms, loaders and explain() then know it. What
// it needs beside the public headers are those that it includes from src/read/ and src/format/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "format/sample_reader.hpp"
#include "read/data_access.hpp"
#include "read/plan_reader.hpp"
#include "read/strategy_table.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

class OneByOne final : public PieceReader {
 public:
  OneByOne(PlanReaderParts parts, const ReaderSite& site)
      : parts_(std::move(parts)),
        list_(site.list),
        stage_(site.stage),
        root_(site.root),
        turns_(site.turns) {}

  void read(const WindowPart& part, const std::optional<WindowPart>&) override {
    if (part.phase != Phase::rest) stage_.begin(root_, part.window);
    const auto runs = list_.runs(part);
    const Turns::Turn turn(turns_);
    auto reader = SampleReader::by(*parts_.data, fetch_through(*parts_.data, *parts_.bulk));
    for (const SampleRun& run : runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) {
        const std::uint64_t sample = run.sample + i;
        reader.read(std::span(&sample, 1));
        stage_.append(root_, part.window, run.entry + i, sample, reader.key(0), reader.value(0));
      }
    }
  }
  void check_unchanged() override { parts_.data->check_unchanged(); }
  ReadTotals totals() const override { return {.source = {.bytes_requested = requested()}}; }
  bool abandoned() const override { return parts_.bulk->abandoned(); }
  void leave() override { parts_.bulk->cancel(); }

 private:
  std::uint64_t requested() const { return parts_.bulk->counters().bytes; }

  PlanReaderParts parts_;
  ReadingList& list_;
  Stage& stage_;
  int root_;
  Turns& turns_;
};

Strategy one_by_one() {
  static const Strategy strategy =
      add_strategy({.name = "one-by-one",
                    .engine = ReadEngine::pread,
                    .make_reader = [](PlanReaderParts parts, const ReaderSite& site) {
                      return std::make_unique<OneByOne>(std::move(parts), site);
                    }});
  return strategy;
}

/// A file of `count` records, each four bytes of its number.
std::string numbers(const test::TemporaryFolder& folder, int count) {
  std::ofstream file(folder.file("numbers.bin"), std::ios::binary);
  for (int i = 0; i < count; ++i) file << std::string(4, static_cast<char>(i));
  return folder.file("numbers.bin");
}

LoaderOptions options_with(const std::string& text) {
  one_by_one();
  return LoaderOptions::parse("format=raw,schema=x:u8[4],batch=6,epochs=2," + text);
}

std::vector<std::uint64_t> all_of(const std::string& path, const LoaderOptions& options) {
  Loader loader = Loader::open(self_communicator(), path, options);
  std::vector<std::uint64_t> ids;
  while (const auto batch = loader.next()) {
    for (const Sample& sample : batch->samples()) {
      EXPECT_EQ(sample.value.size(), 4U);
      EXPECT_EQ(static_cast<std::uint64_t>(sample.value[3]), sample.id);
      ids.push_back(sample.id);
    }
  }
  return ids;
}

TEST(ToyStrategy, IsAnOptionLikeOthers) {
  const LoaderOptions options = options_with("strategy=one-by-one");
  EXPECT_EQ(options.strategy, one_by_one());
  EXPECT_THAT(options.to_text(), testing::HasSubstr("strategy=one-by-one"));
  EXPECT_EQ(LoaderOptions::parse(options.to_text()).strategy, one_by_one());
  EXPECT_THROW(add_strategy({.name = "one-by-one"}), Error);
}

TEST(ToyStrategy, DeliversWhatOthersDeliver) {
  const test::TemporaryFolder folder;
  const std::string path = numbers(folder, 40);
  for (const std::string order : {"strided", "shuffled", "grouped,group=8", "in_memory"}) {
    SCOPED_TRACE(order);
    const auto own = all_of(path, options_with("strategy=one-by-one,order=" + order));
    EXPECT_EQ(own, all_of(path, options_with("coalesce=1,order=" + order)));
    EXPECT_EQ(own.size(), 80U);
  }
}

TEST(ToyStrategy, LoadersTellOfIt) {
  const test::TemporaryFolder folder;
  Loader loader =
      Loader::open(self_communicator(), numbers(folder, 40), options_with("strategy=one-by-one"));
  EXPECT_THAT(loader.explain(), testing::HasSubstr("one-by-one"));
}

}  // namespace
}  // namespace forebay
