#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "loader/state.hpp"

namespace forebay {
namespace {

using testing::HasSubstr;

std::string usage_message(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(LoaderOptions, ReadsAndWritesOneText) {
  const std::string text =
      "batch=256,coalesce=4,strategy=lmm,engine=pread,roots=2,buffers=3,stage-bytes=64MiB,"
      "codec=raw,schema=\"image:u8[3x32x32],label:i32[]\",decode=on,decode-threads=3,decode-ahead="
      "1,"
      "placement=\"progress:0/io:1,3\",undecodable=skip,timeout=5s";
  const LoaderOptions options = LoaderOptions::parse(text);
  EXPECT_EQ(options.batch, 256U);
  EXPECT_EQ(options.coalesce, 4U);
  EXPECT_EQ(options.strategy, Strategy::lmm);
  EXPECT_EQ(options.engine, ReadEngine::pread);
  EXPECT_EQ(options.stage_bytes, 64U << 20);
  EXPECT_EQ(options.schema, "image:u8[3x32x32],label:i32[]");
  EXPECT_EQ(options.timeout, std::chrono::seconds(5));
  EXPECT_EQ(options.to_text(), text);
  EXPECT_EQ(LoaderOptions{}.to_text(), "");
  EXPECT_EQ(LoaderOptions::parse("").to_text(), "");
}

TEST(LoaderOptions, NamesTheWrongWordAndWhatIsAllowed) {
  EXPECT_THAT(usage_message([] { LoaderOptions::parse("batch"); }), HasSubstr("'batch'"));
  EXPECT_THAT(usage_message([] { LoaderOptions::parse("bath=3"); }),
              testing::AllOf(HasSubstr("'bath'"), HasSubstr("batch, coalesce")));
  EXPECT_THAT(usage_message([] { LoaderOptions::parse("strategy=fast"); }),
              testing::AllOf(HasSubstr("'fast'"), HasSubstr("lmdb, lmm")));
  EXPECT_THAT(usage_message([] { LoaderOptions::parse("batch=-1"); }), HasSubstr("-1"));
  EXPECT_THAT(usage_message([] { LoaderOptions::parse("buffers=0"); }), HasSubstr("0"));
  EXPECT_THAT(usage_message([] { LoaderOptions(OrderOptions{.batch = 3}).validate(4); }),
              HasSubstr("4 ranks"));
  EXPECT_THAT(usage_message([] { LoaderOptions::parse("undecodable=drop"); }),
              HasSubstr("fail, skip"));
  EXPECT_THAT(usage_message([] { LoaderOptions::parse("batch=4,undecodable=skip").validate(4); }),
              HasSubstr("--decode"));
  EXPECT_THAT(
      usage_message([] { LoaderOptions::parse("batch=4,epochs=1,iterations=1").validate(4); }),
      HasSubstr("exclude"));
}

TEST(LoaderOptions, RefusesWhatOnlyCodeCanSet) {
  const auto refused = [](auto change) {
    LoaderOptions options(OrderOptions{.batch = 4});
    change(options);
    return usage_message([&] { options.validate(1); });
  };
  EXPECT_THAT(refused([](LoaderOptions& o) { o.buffers = 0; }), HasSubstr("buffers is 0"));
  EXPECT_THAT(refused([](LoaderOptions& o) { o.roots = -2; }), HasSubstr("roots is -2"));
  EXPECT_THAT(refused([](LoaderOptions& o) {
                o.roots = kEveryRank;
                o.stagger = 2;
              }),
              HasSubstr("roots that take turns"));
  EXPECT_THAT(refused([](LoaderOptions& o) { o.timeout = std::chrono::milliseconds::max(); }),
              HasSubstr("timeout is"));
  EXPECT_THAT(refused([](LoaderOptions& o) { o.timeout = std::chrono::milliseconds(0); }),
              HasSubstr("timeout is 0"));
}

TEST(LoaderOptions, EveryOptionIsDocumented) {
  for (const auto& infos : {loader_option_infos(), format_option_infos(), order_option_infos()}) {
    for (const OptionInfo& info : infos) {
      EXPECT_FALSE(info.name.empty());
      EXPECT_FALSE(info.help.empty()) << info.name;
      const bool is_switch = info.name == "big-endian";
      EXPECT_EQ(info.value.empty(), is_switch) << info.name;
    }
  }
}

TEST(LoaderOptions, FilesAreOptionsLikeOthers) {
  const std::string text =
      "batch=8,schema=x:f32[],decode-threads=3,format=raw,header-bytes=12,record-bytes=40,"
      "big-endian=on";
  const LoaderOptions options = LoaderOptions::parse(text);
  EXPECT_EQ(options.format, "raw");
  EXPECT_EQ(options.header_bytes, 12U);
  EXPECT_EQ(options.record_bytes, 40U);
  EXPECT_TRUE(options.big_endian);
  EXPECT_EQ(options.decode_threads, 3U);
  EXPECT_EQ(options.to_text(), text);
  EXPECT_THAT(usage_message([] { LoaderOptions::parse("format=rar"); }), HasSubstr("hdf5, npy"));
  EXPECT_THAT(usage_message([] { LoaderOptions::parse("decode-threads=1000"); }),
              HasSubstr("decode-threads"));
}

TEST(LoaderOptions, OrdersAreOptionsLikeOthers) {
  const std::string text =
      "batch=256,order=grouped,seed=7,end=pad,group=64,reuse=2,reuse-scope=node,window=4";
  const LoaderOptions options = LoaderOptions::parse(text);
  EXPECT_EQ(options.order, OrderName::grouped);
  EXPECT_EQ(options.end, OrderEnd::pad);
  EXPECT_EQ(options.group, 64U);
  EXPECT_EQ(options.reuse_scope, ReuseScope::node);
  EXPECT_EQ(options.to_text(), text);
  EXPECT_EQ(LoaderOptions::parse("order=in-memory,memory-ratio=0.25").to_text(),
            "order=in_memory,memory-ratio=0.25");
}

TEST(LoaderOptions, WhatAnOrderDoesNotHaveIsRefused) {
  const auto refused = [](const std::string& text, int ranks = 1) {
    return usage_message([&] { LoaderOptions::parse("batch=8," + text).validate(ranks); });
  };
  EXPECT_THAT(refused("order=sorted"), HasSubstr("strided, grouped"));
  EXPECT_THAT(refused("memory-ratio=0"), HasSubstr("memory-ratio"));
  EXPECT_THAT(refused("memory-ratio=1.5"), HasSubstr("at most 1"));
  EXPECT_THAT(refused("keep=2"), HasSubstr("--order"));
  for (const std::string end : {"exact", "drop", "pad", "wrap"}) {
    EXPECT_THAT(refused("end=" + end), HasSubstr("--epochs"));
    EXPECT_THAT(refused("iterations=3,end=" + end), HasSubstr("--epochs"));
    EXPECT_NO_THROW(LoaderOptions::parse("batch=8,epochs=1,end=" + end).validate(1));
    EXPECT_NO_THROW(LoaderOptions::parse("batch=8,order=shuffled,end=" + end).validate(1));
    EXPECT_EQ(LoaderOptions::parse("end=" + end).to_text(), "end=" + end);
  }
  EXPECT_THAT(refused("order=shuffled,coalesce=2"), HasSubstr("not coalesced"));
  EXPECT_THAT(refused("order=listed"), HasSubstr("--list"));
}

RunState some_state() {
  return {.fingerprint = "lmdb:x",
          .coalesce = 2,
          .entries = 100,
          .segments = {{.ranks = 4, .batch = 10, .iterations = 6}}};
}

TEST(ResumeState, GoesOnWithTheSameRanks) {
  const LoaderOptions options = resume_options(
      write_state(some_state()), LoaderOptions(OrderOptions{.batch = 10, .coalesce = 2}), 4);
  EXPECT_EQ(options.first_iteration, 6U);
  EXPECT_TRUE(options.done.empty());
  EXPECT_EQ(options.fingerprint, "lmdb:x");
}

TEST(ResumeState, GoesOnBehindAFinishedStretchOnOtherRanks) {
  const LoaderOptions options = resume_options(
      write_state(some_state()), LoaderOptions(OrderOptions{.batch = 7, .coalesce = 2}), 3);
  EXPECT_EQ(options.first_iteration, 0U);
  EXPECT_EQ(options.done, some_state().segments);
}

TEST(ResumeState, GoesOnInsideAWindowOfOtherRanks) {
  RunState inside = some_state();
  inside.segments[0].iterations = 7;
  const LoaderOptions options =
      resume_options(write_state(inside), LoaderOptions(OrderOptions{.batch = 7}), 3);
  EXPECT_EQ(options.first_iteration, 0U);
  EXPECT_EQ(options.done, inside.segments);
  const StridedStart start = start_after(100, options.coalesce, options.done);
  EXPECT_EQ(
      start,
      (StridedStart{70, {{.begin = 60, .ranks = 4, .batch = 10, .coalesce = 2, .iterations = 1}}}));
}

TEST(ResumeState, KnowsEveryWindowThatIsLeftYet) {
  const std::vector<Segment> segments{{4, 10, 7}, {3, 5, 4}, {2, 6, 0}, {2, 7, 3}};
  EXPECT_EQ(start_after(100, 1, segments), (StridedStart{70 + 20 + 21, {}}));
  EXPECT_EQ(start_after(100, 4, segments), (StridedStart{70 + 20 + 21, {{90, 2, 7, 4, 3}}}));
  const std::vector<Segment> within{{4, 10, 7}, {2, 3, 2}};
  EXPECT_EQ(start_after(100, 4, within),
            (StridedStart{70 + 6, {{40, 4, 10, 4, 3}, {70, 2, 3, 4, 2}}}));
}

// 25 samples in batches of 4, two a window: three windows, and one sample.
RunState ended_state() {
  return {.fingerprint = "lmdb:x",
          .coalesce = 2,
          .entries = 25,
          .segments = {{.ranks = 2, .batch = 4, .iterations = 7, .epochs = 1}}};
}

TEST(ResumeState, ARunThatHasEndedGoesOnBehindItsEnd) {
  const LoaderOptions same =
      resume_options(write_state(ended_state()),
                     LoaderOptions(OrderOptions{.batch = 4}, RunOptions{.epochs = 1}), 2);
  EXPECT_EQ(same.first_iteration, 7U);
  EXPECT_TRUE(same.done.empty());
  const LoaderOptions longer =
      resume_options(write_state(ended_state()),
                     LoaderOptions(OrderOptions{.batch = 4}, RunOptions{.epochs = 2}), 2);
  EXPECT_EQ(longer.first_iteration, 0U) << "its last batch was shaped by the limit";
  EXPECT_EQ(longer.done, ended_state().segments);
  EXPECT_EQ(start_after(25, 2, longer.done).position, 25U);
  EXPECT_THAT(write_state(ended_state()), HasSubstr(R"("version":2)"));
  EXPECT_THAT(write_state(some_state()), HasSubstr(R"("version":1)"));
}

TEST(ResumeState, ALimitCountsOnceItShapesBatches) {
  RunState before = ended_state();
  before.segments[0] = {.ranks = 2, .batch = 4, .iterations = 6};
  for (const std::uint64_t epochs : {0, 1, 2}) {
    const LoaderOptions options =
        resume_options(write_state(before),
                       LoaderOptions(OrderOptions{.batch = 4}, RunOptions{.epochs = epochs}), 2);
    EXPECT_EQ(options.first_iteration, 6U) << "as any limit has it";
  }
  before.segments[0].iterations = 7;  // of a run without a limit
  EXPECT_EQ(resume_options(write_state(before),
                           LoaderOptions(OrderOptions{.batch = 4}, RunOptions{.epochs = 1}), 2)
                .done.size(),
            1U);
  EXPECT_EQ(resume_options(write_state(before),
                           LoaderOptions(OrderOptions{.batch = 4}, RunOptions{.epochs = 2}), 2)
                .done.size(),
            0U);
}

RunState shuffled_state() {
  return {.order = OrderName::shuffled,
          .fingerprint = "lmdb:x",
          .entries = 100,
          .identity = "order=shuffled,seed=1",
          .epoch = 3,
          .iterations = 36,
          .segments = {{.ranks = 4, .batch = 10, .iterations = 6}}};
}

TEST(ResumeState, AnOrderThatIsNewInEveryEpochGoesOnInItsEpoch) {
  LoaderOptions options(OrderOptions{.batch = 10});
  options.order = OrderName::shuffled;
  options = resume_options(write_state(shuffled_state()), options, 4);
  EXPECT_EQ(options.first_iteration, 36U);
  EXPECT_EQ(options.first_epoch, 3U);
  EXPECT_EQ(options.order_identity, "order=shuffled,seed=1");
  EXPECT_EQ(options.done, shuffled_state().segments);
}

TEST(ResumeState, AnotherOrderIsRefused) {
  EXPECT_THAT(usage_message([] {
                resume_options(write_state(shuffled_state()),
                               LoaderOptions(OrderOptions{.batch = 10}), 4);
              }),
              HasSubstr("--order shuffled"));
  LoaderOptions options(OrderOptions{.batch = 10});
  options.order = OrderName::grouped;
  EXPECT_THAT(usage_message([&] { resume_options(write_state(some_state()), options, 4); }),
              HasSubstr("--order strided"));
  RunState beyond = shuffled_state();
  beyond.epoch = std::uint64_t{1} << 50;
  EXPECT_THAT(usage_message([&] {
                resume_options(write_state(beyond), LoaderOptions(OrderOptions{.batch = 10}), 4);
              }),
              HasSubstr("out of range"));
}

TEST(ResumeState, RefusesNumbersThatNoRunCanHave) {
  const auto resume = [](std::uint64_t coalesce, std::int64_t ranks, std::int64_t batch) {
    const std::string text =
        R"({"version":1,"order":"strided","fingerprint":"x","entries":9,"coalesce":)" +
        std::to_string(coalesce) + R"(,"segments":[{"ranks":)" + std::to_string(ranks) +
        R"(,"batch":)" + std::to_string(batch) + R"(,"iterations":5}]})";
    return usage_message(
        [&] { resume_options(text, LoaderOptions(OrderOptions{.batch = 10}), 4); });
  };
  EXPECT_THAT(resume(0, 2, 10), HasSubstr("out of range"));
  EXPECT_THAT(resume(std::uint64_t{1} << 39, 2, 10), HasSubstr("out of range"));
  EXPECT_THAT(resume(2, 0, 10), HasSubstr("out of range"));
  EXPECT_THAT(resume(2, 11, 10), HasSubstr("out of range"));
  EXPECT_THAT(resume(2, (std::int64_t{1} << 32) + 1, 10), HasSubstr("out of range"));
  EXPECT_THAT(resume(2, 2, -1), HasSubstr("out of range"));
  RunState many = some_state();
  many.segments.assign(5000, {.ranks = 1, .batch = 1, .iterations = 1});
  EXPECT_THAT(usage_message([&] {
                resume_options(write_state(many), LoaderOptions(OrderOptions{.batch = 10}), 4);
              }),
              HasSubstr("5000 times"));
}

TEST(ResumeState, RefusesWhatItCannotContinue) {
  EXPECT_THAT(usage_message([] {
                resume_options(write_state(some_state()),
                               LoaderOptions(OrderOptions{.batch = 10, .coalesce = 3}), 4);
              }),
              HasSubstr("--coalesce 2"));
  EXPECT_EQ(resume_options(write_state(some_state()), LoaderOptions(OrderOptions{.batch = 10}), 4)
                .coalesce,
            2U);
  for (const char* text : {"", "[]", "{}", "null", "{\"version\":1}", "\xff"}) {
    EXPECT_THROW(resume_options(text, LoaderOptions(OrderOptions{.batch = 10}), 4), Error) << text;
  }
  EXPECT_THROW(resume_options(R"({"version":1,"order":"strided","fingerprint":"x","entries":1,)"
                              R"("coalesce":1,"segments":[{"ranks":1,"batch":4294967296,)"
                              R"("iterations":1099511627776}]})",
                              LoaderOptions(OrderOptions{.batch = 10}), 4),
               Error);
  RunState many = some_state();
  many.segments.assign(8, {.ranks = 1, .batch = 1U << 31, .iterations = 1U << 30});
  EXPECT_THROW(
      resume_options(write_state(many), LoaderOptions(OrderOptions{.batch = 10, .coalesce = 2}), 4),
      Error)
      << "their sum is no position";
}

}  // namespace
}  // namespace forebay
