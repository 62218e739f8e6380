// How much memory a loader asks for: what its data set can use, and what is known at open not to be
// enough is refused there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forebay/error.hpp"
#include "tests/loader/draw_data.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/page_cache.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::DrawData;
using test::LmdbBuilder;
using test::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;

LoaderOptions options_of(const std::string& order, std::uint64_t batch) {
  LoaderOptions options = LoaderOptions::parse(order);
  options.batch = batch;
  options.epochs = 1;
  return options;
}

std::uint64_t delivered(Loader& loader) {
  std::uint64_t samples = 0;
  while (const auto batch = loader.next()) samples += batch->samples().size();
  return samples;
}

// The first buffers of this order are small: they fit, and those behind them do not.
TEST(StageSize, WhatFitsOnlyAtTheStartIsRefusedAtOpen) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(2000).values(12000));
  for (const std::string strategy : {"auto", "lmm-dio-prov"}) {
    LoaderOptions options = options_of("order=shuffled,strategy=" + strategy, 32);
    options.stage_bytes = std::uint64_t{4} << 20;
    const Error error =
        test::error_from([&] { Loader::open(self_communicator(), data.path(), options); });
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("samples takes"), HasSubstr("has 2088960"),
                                    HasSubstr("raise --stage-bytes"), HasSubstr("--window"),
                                    HasSubstr(data.path())));
    options.stage_bytes = std::uint64_t{16} << 20;
    Loader loader = Loader::open(self_communicator(), data.path(), options);
    EXPECT_EQ(delivered(loader), data.entries());
  }
}

TEST(StageSize, AWalkThatCannotFitIsRefusedAtOpen) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(500).values(12000));
  LoaderOptions options = options_of("strategy=lmm,coalesce=4", 64);
  options.stage_bytes = std::uint64_t{1} << 20;
  EXPECT_THAT(
      test::error_from([&] { Loader::open(self_communicator(), data.path(), options); }).what(),
      HasSubstr("a window of 256 samples takes"));
}

// Where values are used in the mapped file the stage holds nothing of them.
TEST(StageSize, ValuesInTheMappedFileNeedNoStage) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(1000).values(12000));
  LoaderOptions options = options_of("order=shuffled,codec=raw,schema=x:u8[12000]", 32);
  options.decode = true;
  options.stage_bytes = std::uint64_t{4} << 20;
  for (const auto drop : {false, true}) {
    if (drop) test::drop_from_page_cache(data.path() + "/data.mdb");
    Loader loader = Loader::open(self_communicator(), data.path(), options);
    EXPECT_EQ(delivered(loader), data.entries());
  }
}

TEST(StageSize, ASmallDataSetAsksForASmallStage) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(10).values(200));
  for (const std::string order : {"strided", "shuffled", "grouped,group=2", "strided,strategy=lmm",
                                  "strided,roots=2", "strided,coalesce=7"}) {
    for (const std::uint64_t batch : {1, 4, 64}) {  // the last: samples several times in a batch
      LoaderOptions options = options_of("order=" + order, batch);
      if (order.starts_with("strided")) options.iterations = 9;
      if (order.starts_with("strided")) options.epochs = 0;
      Loader loader = Loader::open(self_communicator(), data.path(), options);
      EXPECT_THAT(loader.explain(), testing::ContainsRegex("2 buffers in [0-9.]+ KiB")) << order;
      EXPECT_EQ(delivered(loader), options.iterations > 0 ? 9 * batch : data.entries());
    }
  }
}

}  // namespace
}  // namespace forebay
