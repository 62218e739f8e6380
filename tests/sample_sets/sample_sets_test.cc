// The central contract (DESIGN 3) for files with fields: whatever the order, engine, strategy,
// roots and node layout, each rank gets the samples that the order says, with the files' bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "tests/loader/random_loading.hpp"
#include "tests/sample_sets/sample_set_data.hpp"
#include "tests/support/scale.hpp"

namespace forebay::test {
namespace {

using testing::Each;
using testing::HasSubstr;

const Hdf5Recipe kPlain{.name = "a", .shape = {7}};
const Hdf5Recipe kNative{.name = "b", .shape = {3, 5}, .native = true};
const Hdf5Recipe kBytes{.name = "c", .shape = {11}, .bytes = true};
const Hdf5Recipe kZipped{.name = "d", .shape = {6, 4}, .chunk = {10, 6, 4}, .deflate = 3};
const Hdf5Recipe kSplit{.name = "e", .shape = {5}, .chunk = {16, 2}, .deflate = 1, .shuffle = true};
const Hdf5Recipe kChunks{.name = "f", .shape = {9}, .chunk = {8, 9}, .native = true};

/// A data set and the options that open it.
struct Case {
  DrawData data;
  LoaderOptions options = {};
};

std::vector<Case> all_cases(const TemporaryFolder& folder) {
  std::vector<Case> cases;
  cases.push_back({hdf5_data(folder, "native", {kNative}, {173})});
  cases.push_back({hdf5_data(folder, "swapped", {kPlain, kBytes}, {200})});
  cases.push_back({hdf5_data(folder, "zipped", {kZipped}, {211})});
  cases.push_back({hdf5_data(folder, "mixed", {kPlain, kZipped, kSplit, kChunks}, {150})});
  cases.push_back({hdf5_data(folder, "files", {kBytes, kZipped}, {61, 0, 7, 98, 1})});
  cases.push_back({hdf5_data(folder, "joined", {kChunks}, {40, 30, 50})});
  cases.push_back({hdf5_data(folder, "one", {kPlain, kZipped}, {1})});
  cases.push_back({raw_data(folder, 190, false), raw_options({}, false)});
  cases.push_back({raw_data(folder, 77, true), raw_options({}, true)});
  return cases;
}

TEST(SampleSets, NoStrategyChangesWhatAnOrderDelivers) {
  TemporaryFolder folder;
  const std::vector<Case> cases = all_cases(folder);
  RandomChoice choice(11);
  const auto rounds = static_cast<std::size_t>(long_cases(90));
  for (std::size_t round = 0; round < rounds; ++round) {
    const Case& from = cases[round % cases.size()];
    LoaderOptions options = from.options;
    options.stage_bytes = std::uint64_t{16} << 20;
    load_at_random(choice, from.data.path(), from.data, options);
  }
}

TEST(SampleSets, LittleMemoryMakesMoreReadsAndNoOtherSamples) {
  TemporaryFolder folder;
  // Chunks as large stored as decoded, all of which a window needs.
  const Hdf5Recipe stored{.name = "x", .shape = {200}, .chunk = {50, 200}, .deflate = 0};
  const DrawData data = hdf5_data(folder, "d", {kPlain, stored}, {300});
  LoaderOptions options(OrderOptions{.batch = 10}, RunOptions{.epochs = 1});
  options.order = OrderName::shuffled;
  options.window = 20;
  options.gap_bytes = 0;
  std::uint64_t chunks = 0;
  for (const std::uint64_t kib : {4096, 420}) {
    options.stage_bytes = kib << 10;
    Loader loader = Loader::open(self_communicator(), data.path(), options);
    expect_drawn(data, loader, options, 1, 0);
    EXPECT_GT(loader.statistics().chunks_decoded, chunks);
    chunks = loader.statistics().chunks_decoded;
  }
}

TEST(SampleSets, ASampleThatFitsNoMemorySaysWhatToDo) {
  TemporaryFolder folder;
  const DrawData data =
      hdf5_data(folder, "d",
                {{.name = "x", .shape = {1000}, .chunk = {100, 1000}, .deflate = 1},
                 {.name = "y", .shape = {2}}},
                {200});
  LoaderOptions options(OrderOptions{.batch = 1}, RunOptions{.epochs = 1});
  options.stage_bytes = 64 << 10;
  options.coalesce = 1;
  try {
    Loader::open(self_communicator(), data.path(), options).next();
    FAIL() << "it fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), HasSubstr("--stage-bytes"));
  }
}

TEST(SampleSets, AGroupedEpochReadsEachFieldOfAGroupOnce) {
  TemporaryFolder folder;
  const DrawData data = hdf5_data(
      folder, "d", {{.name = "x", .shape = {400}, .native = true}, {.name = "y", .shape = {200}}},
      {1000});
  LoaderOptions options(OrderOptions{.batch = 20}, RunOptions{.epochs = 2});
  options.order = OrderName::grouped;
  options.group = 50;
  Loader loader = Loader::open(self_communicator(), data.path(), options);
  expect_drawn(data, loader, options, 1, 0);
  // Beside them the first value, and once an epoch a request that is cut at 1 MiB.
  constexpr std::uint64_t kGroups = 20, kFields = 2;
  EXPECT_LE(loader.statistics().requests, 2 * (kGroups * kFields + 1) + kFields);
}

TEST(SampleSets, AGroupedEpochDecodesEachChunkOnce) {
  TemporaryFolder folder;
  const DrawData data = hdf5_data(folder, "d", {kZipped, kSplit}, {1003});
  LoaderOptions options(OrderOptions{.batch = 20}, RunOptions{.epochs = 3});
  options.order = OrderName::grouped;
  options.group = 160;  // of both fields' chunks a multiple
  Loader loader = Loader::open(self_communicator(), data.path(), options);
  expect_drawn(data, loader, options, 1, 0);
  const std::uint64_t chunks = (1003 + 9) / 10 + (1003 + 15) / 16 * 3;
  EXPECT_EQ(loader.statistics().chunks_decoded, 3 * chunks);
  EXPECT_EQ(loader.statistics().bytes_decoded,
            3 * ((1003 + 9) / 10 * 10 * 24 * 2 + (1003 + 15) / 16 * 3 * 16 * 2 * 2));
}

TEST(SampleSets, FilesAreTheGroupsWhereNoSizeIsGiven) {
  TemporaryFolder folder;
  const DrawData data = hdf5_data(folder, "d", {kNative}, {31, 0, 14, 55, 20});
  LoaderOptions options(OrderOptions{.batch = 6}, RunOptions{.epochs = 2});
  options.order = OrderName::grouped;
  OrderOptions order = data.order(options, 2);
  order.bounds = std::make_shared<const std::vector<std::uint64_t>>(
      std::vector<std::uint64_t>{0, 31, 45, 100, 120});
  run_ranks(2, 0, [&](const auto& comm) {
    Loader loader = Loader::open(comm, data.path(), options);
    expect_drawn(data, loader, order, options.epochs, comm->rank());
  });
}

TEST(SampleSets, MoreFilesThanMayBeOpenAreReadAllTheSame) {
  TemporaryFolder folder;
  const DrawData data =
      hdf5_data(folder, "d", {kNative, kZipped}, std::vector<std::uint64_t>(200, 3));
  for (const ReadEngine engine : {ReadEngine::pread, ReadEngine::uring}) {
    LoaderOptions options(OrderOptions{.batch = 25}, RunOptions{.epochs = 1});
    options.order = OrderName::shuffled;
    options.engine = engine;
    Loader loader = Loader::open(self_communicator(), data.path(), options);
    const auto descriptors =
        std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    EXPECT_LT(descriptors, 170);
    expect_drawn(data, loader, options, 1, 0);
  }
}

TEST(SampleSets, BatchesDecodeIntoOneArrayAField) {
  TemporaryFolder folder;
  const DrawData data = hdf5_data(folder, "d", {kPlain, kZipped}, {100});
  LoaderOptions options(OrderOptions{.batch = 10}, RunOptions{.epochs = 1});
  Loader loader = Loader::open(self_communicator(), data.path(), options);
  EXPECT_EQ(to_string(loader.schema()), "a:u16[7],d:u16[6x4]");
  const auto batch = loader.next();
  std::vector<std::byte> a(10 * 14), d(10 * 48);
  const std::span<std::byte> fields[] = {a, d};
  loader.decode(*batch, fields);
  for (std::size_t i = 0; i < 10; ++i) {
    std::string both = text(std::span(a).subspan(i * 14, 14));
    both += text(std::span(d).subspan(i * 48, 48));
    EXPECT_EQ(both, data.record(i).value);
  }
}

TEST(SampleSets, ARunGoesOnWhereItHasStopped) {
  TemporaryFolder folder;
  const DrawData data = hdf5_data(folder, "d", {kPlain, kZipped}, {120, 31});
  for (const OrderName order : {OrderName::strided, OrderName::grouped, OrderName::shuffled}) {
    LoaderOptions options(OrderOptions{.batch = 7}, RunOptions{.epochs = 2});
    options.order = order;
    if (order == OrderName::grouped) options.group = 20;
    expect_resumed(data.path(), options);
  }
}

TEST(SampleSets, ThePlanSaysWhatIsReadInEveryOrder) {
  TemporaryFolder folder;
  const DrawData data = hdf5_data(folder, "d", {kNative}, {200});
  for (const OrderName order : {OrderName::strided, OrderName::grouped, OrderName::shuffled}) {
    LoaderOptions options(
        OrderOptions{.batch = 10, .coalesce = order == OrderName::strided ? 3U : 0U});
    options.epochs = 1;
    options.order = order;
    options.strategy = Strategy::lmm_dio_prov;  // which reads windows one by one
    options.explain = true;
    options.gap_bytes = 0;
    if (order == OrderName::grouped) options.group = 30;
    const Loader loader = Loader::open(self_communicator(), data.path(), options);
    EXPECT_THAT(loader.plan(true),
                HasSubstr(order == OrderName::shuffled ? "\"window_samples\":80"
                                                       : "\"window_samples\":30"));
    EXPECT_THAT(loader.plan(true), HasSubstr("\"expected_amplification\":1.0"));
    EXPECT_THAT(loader.explain(), HasSubstr("hdf5"));
  }
}

TEST(SampleSets, AShuffledEpochOfWhichNothingMovesIsReadLikeASequentialOne) {
  TemporaryFolder folder;
  const std::string path = folder.file("records.bin");
  std::ofstream(path, std::ios::binary) << std::string(200 * 8000, 'x');
  const auto plan = [&](std::uint64_t keep) {
    LoaderOptions options(DataOptions{.format = "raw", .record_bytes = 8000, .schema = "x:u8[100]"},
                          OrderOptions{.order = OrderName::shuffled, .batch = 10, .keep = keep},
                          RunOptions{.epochs = 1, .explain = true});
    return Loader::open(self_communicator(), path, options).plan(true);
  };
  EXPECT_THAT(plan(0), HasSubstr("\"reads\":1,"));
  EXPECT_THAT(plan(200), HasSubstr("\"reads\":1,"));
  EXPECT_THAT(plan(1), testing::Not(HasSubstr("\"reads\":1,")));
}

/// The message with which all of `ranks` fail to open; each within 5 s.
std::string refusal(const std::string& path, const LoaderOptions& options, int ranks = 3) {
  std::vector<std::string> messages(static_cast<std::size_t>(ranks));
  run_ranks(ranks, 0, [&](const auto& comm) {
    const double begin = now_seconds();
    try {
      Loader::open(comm, path, options);
    } catch (const Error& error) {
      messages[static_cast<std::size_t>(comm->rank())] = error.what();
    }
    EXPECT_LT(now_seconds() - begin, 5);
  });
  EXPECT_THAT(messages, Each(messages[0]));
  return messages[0];
}

TEST(SampleSets, WhatCannotBeIsRefusedOnAllRanks) {
  TemporaryFolder folder;
  const DrawData data = hdf5_data(folder, "d", {kNative, kZipped}, {100});
  const LoaderOptions plain(OrderOptions{.batch = 9}, RunOptions{.epochs = 1});
  const auto with = [&](const std::string& text) {
    LoaderOptions options = LoaderOptions::parse(text);
    options.batch = 9;
    return refusal(data.path(), options);
  };
  for (const char* strategy : {"lmdb", "lmm", "lmm-dm"}) {
    EXPECT_THAT(with("strategy=" + std::string(strategy)), HasSubstr("LMDB"));
  }
  for (const char* locate : {"seek", "handoff", "scatter", "scan", "provenance"}) {
    EXPECT_THAT(with("locate=" + std::string(locate)), HasSubstr("--locate"));
  }
  EXPECT_THAT(with("codec=datum"), HasSubstr("--codec"));
  EXPECT_THAT(with("schema=\"x:u8[3]\""), HasSubstr("--schema"));
  EXPECT_THAT(with("format=npy"), HasSubstr("npy"));
  EXPECT_THAT(with("order=grouped,group=101"), HasSubstr("larger than the data set"));
  EXPECT_THAT(with("order=grouped"), HasSubstr("--group"));
  EXPECT_THAT(with("order=grouped,group=50"), HasSubstr("2 groups cannot be shared by 3 ranks"));
  EXPECT_THAT(refusal(data.path() + "#b,z", plain), HasSubstr("no data set 'z'; it has b, d"));
  std::filesystem::resize_file(data.path(), std::filesystem::file_size(data.path()) / 2);
  EXPECT_THAT(refusal(data.path(), plain), HasSubstr(data.path()));
}

TEST(SampleSets, FieldsWithUnequalRowsAreRefusedOnAllRanks) {
  TemporaryFolder folder;
  Hdf5Builder()
      .add({.name = "x", .shape = {10, 2}})
      .add({.name = "y", .shape = {11, 2}})
      .build(folder.file("d.h5"));
  EXPECT_THAT(refusal(folder.file("d.h5"), LoaderOptions(OrderOptions{.batch = 9})),
              HasSubstr("10 rows"));
}

/// What all ranks fail with when `change` happens to the file behind the first iteration.
std::string failure_after(const DrawData& data, const LoaderOptions& options,
                          const std::function<void()>& change) {
  std::vector<std::string> messages(3);
  run_ranks(3, 0, [&](const auto& comm) {
    Loader loader = Loader::open(comm, data.path(), options);
    loader.next();
    comm->barrier();
    if (comm->rank() == 0) change();
    comm->barrier();
    const double begin = now_seconds();
    try {
      while (now_seconds() - begin < 10) loader.next();
    } catch (const Error& error) {
      messages[static_cast<std::size_t>(comm->rank())] = error.what();
    }
    EXPECT_LT(now_seconds() - begin, 5);
    comm->barrier();
  });
  EXPECT_THAT(messages, Each(messages[0]));
  return messages[0];
}

void grow(const std::string& path) { std::ofstream(path, std::ios::app) << "more"; }
void cut(const std::string& path) { std::filesystem::resize_file(path, 4096); }
void garble(const std::string& path) {
  const auto size = std::filesystem::file_size(path);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << std::string(size, '\xff');
}

TEST(SampleSets, AFileThatChangesWhileOpenFailsOnAllRanks) {
  for (const ReadEngine engine : {ReadEngine::pread, ReadEngine::mmap, ReadEngine::uring}) {
    for (const OrderName order : {OrderName::strided, OrderName::shuffled}) {
      for (const auto change : {grow, cut, garble}) {
        TemporaryFolder folder;
        const DrawData data = hdf5_data(folder, "d", {kNative, kZipped}, {600});
        LoaderOptions options(OrderOptions{.batch = 9});
        options.order = order;
        options.window = 1;
        options.engine = engine;
        options.coalesce = order == OrderName::strided ? 1 : 0;
        EXPECT_THAT(failure_after(data, options, [&] { change(data.path()); }),
                    testing::AllOf(HasSubstr("changed"), HasSubstr(data.path())));
      }
    }
  }
}

TEST(SampleSets, ADamagedChunkNamesItsSampleOnAllRanks) {
  TemporaryFolder folder;
  const DrawData data = hdf5_data(folder, "d", {kZipped}, {100});
  {
    std::fstream file(data.path(), std::ios::in | std::ios::out | std::ios::binary);
    std::string bytes(std::filesystem::file_size(data.path()), '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::size_t streams = 0, at = 0;  // zlib's streams begin with 78 5e at this level
    while (streams < 5) {
      at = bytes.find("\x78\x5e", at + 1);
      ASSERT_NE(at, std::string::npos);
      ++streams;
    }
    file.seekp(static_cast<std::streamoff>(at + 8));
    file.write("\xff\xff\xff\xff\xff\xff", 6);
  }
  std::vector<std::string> messages(2);
  run_ranks(2, 0, [&](const auto& comm) {
    Loader loader = Loader::open(comm, data.path(),
                                 LoaderOptions(OrderOptions{.batch = 10}, RunOptions{.epochs = 1}));
    try {
      while (loader.next()) {
      }
    } catch (const Error& error) {
      messages[static_cast<std::size_t>(comm->rank())] = error.what();
    }
  });
  EXPECT_THAT(messages[0], testing::AllOf(HasSubstr("sample"), HasSubstr(data.path())));
  EXPECT_THAT(messages, Each(messages[0]));
}

TEST(SampleSets, MayBeDroppedAtAnyMoment) {
  TemporaryFolder folder;
  const DrawData data = hdf5_data(folder, "d", {kNative, kZipped}, {500, 300});
  const double begin = now_seconds();
  for (int batches = 0; batches < 10; ++batches) {
    LoaderOptions options(OrderOptions{.batch = 12});
    options.order = batches % 2 == 0 ? OrderName::grouped : OrderName::strided;
    options.group = batches % 2 == 0 ? 50 : 0;
    options.engine = kEngines[static_cast<std::size_t>(batches) % std::size(kEngines)];
    options.decode_threads = 2;
    run_ranks(2, 0, [&](const auto& comm) {
      Loader loader = Loader::open(comm, data.path(), options);
      for (int i = 0; i < batches; ++i) ASSERT_TRUE(loader.next());
    });
  }
  EXPECT_LT(now_seconds() - begin, 30);
}

}  // namespace
}  // namespace forebay::test
