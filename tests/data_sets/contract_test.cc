// What every format of the registry has to do, asked of each in the same words.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "forebay/packed_parts.hpp"
#include "forebay/samples.hpp"
#include "forebay/storage.hpp"
#include "format/registry.hpp"
#include "format/sample_reader.hpp"
#include "tests/data_sets/made_sets.hpp"
#include "tests/support/error_from.hpp"

namespace forebay {
namespace {

using test::kSamples;
using test::MadeSet;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string key_of(const MadeSet& set, std::uint64_t id) {
  return set.keys.empty() ? "" : set.keys[id];
}

class EveryFormat : public ::testing::TestWithParam<std::string> {
 protected:
  EveryFormat() : set_(test::makers().at(GetParam())(folder_)) {}

  FormatOptions format_options() const {
    FormatOptions options;
    options.format = set_.options.format;
    options.schema = set_.options.schema;
    options.header_bytes = set_.options.header_bytes;
    options.window_length = set_.options.length;
    options.window_step = set_.options.step;
    return options;
  }
  bool is_files() const {
    return !std::filesystem::is_directory(set_.path) && set_.path.find('&') == std::string::npos;
  }
  std::string format() const { return set_.format.empty() ? GetParam() : set_.format; }
  std::unique_ptr<DataSet> open() const { return open_data_set(set_.path, format_options()); }

  /// Of a loader of the set, in an order.
  LoaderOptions options_in(const char* order, std::uint64_t batch, std::uint64_t epochs) const {
    LoaderOptions options = LoaderOptions::parse(order);
    static_cast<DataOptions&>(options) = set_.options;
    options.codec = set_.options.codec;
    options.batch = batch;
    options.epochs = epochs;
    return options;
  }

  /// Whether `ids`, in any order, are what they have to be.
  void expect_samples(const Samples& samples, const std::vector<std::uint64_t>& ids) const {
    std::size_t count = 0;
    samples.read(ids, [&](const SampleView& sample) {
      ++count;
      EXPECT_EQ(sample.id, ids[sample.position]);
      EXPECT_EQ(text_of(sample.value), set_.values[sample.id]);
      EXPECT_EQ(text_of(sample.key), key_of(set_, sample.id));
    });
    EXPECT_EQ(count, ids.size());
  }

  test::TemporaryFolder folder_;
  MadeSet set_;
};

std::uint64_t bytes_of(std::span<const std::string> values) {
  std::uint64_t bytes = 0;
  for (const std::string& value : values) bytes += value.size();
  return bytes;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, maker] : test::makers()) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat, ::testing::ValuesIn(names()),
                         [](const auto& name) { return name.param; });

TEST(EveryFormat, IsAskedHere) {
  std::set<std::string> here{"hdf5"};
  for (const std::string& name : names()) here.insert(name);
  for (const Format& format : formats()) {
    EXPECT_TRUE(here.contains(format.name)) << format.name << " has no data set to be tested with";
    EXPECT_FALSE(format.description.empty());
  }
}

TEST_P(EveryFormat, IsRecognised) {
  if (set_.options.format != "auto") GTEST_SKIP() << "only when asked for by name";
  EXPECT_EQ(recognise_files(set_.path, format_options()), format());
}

TEST_P(EveryFormat, TellsFacts) {
  const auto data = open();
  const DataSetFacts& facts = data->facts();
  EXPECT_EQ(facts.path, set_.path);
  EXPECT_EQ(facts.format, format());
  EXPECT_EQ(facts.entries, kSamples);
  EXPECT_EQ(facts.stored.size(), facts.part_count());
  EXPECT_EQ(facts.named, !set_.keys.empty());
  EXPECT_EQ(facts.fingerprint, open()->facts().fingerprint);
  EXPECT_GE(facts.value_bytes + 8 * kSamples, bytes_of(set_.values));
}

TEST_P(EveryFormat, PlansReadEachByteOnceAndInsideOfTheFiles) {
  const auto data = open();
  std::vector<std::uint64_t> ids{7, 3, 3, 40, 0, 7};
  const auto plan = data->plan(ids);
  const FileExtent* before = nullptr;
  for (const FileExtent& extent : plan->extents()) {
    ASSERT_LT(extent.file, data->files().size());
    EXPECT_LE(extent.offset + extent.length, data->files()[extent.file]->size());
    if (before != nullptr && before->file == extent.file) {
      EXPECT_GE(extent.offset, before->offset + before->length);
    }
    before = &extent;
  }
  EXPECT_EQ(test::error_from([&] { data->plan(std::vector<std::uint64_t>{kSamples}); }).kind(),
            ErrorKind::usage);
}

TEST_P(EveryFormat, GivesOneSampleWithoutAnIndex) {
  const auto data = open();
  for (const std::uint64_t id : {std::uint64_t{0}, kSamples - 1}) {
    int calls = 0;
    data->read_one(id, [&](const Record& record) {
      ++calls;
      EXPECT_EQ(record.sample, id);
      EXPECT_EQ(text_of(record.key), key_of(set_, id));
      EXPECT_EQ(text_of(record.value), set_.values[id]);
    });
    EXPECT_EQ(calls, 1);
  }
  EXPECT_EQ(data->used_index_bytes(), 0U);
  EXPECT_EQ(test::error_from([&] { data->read_one(kSamples, [](const Record&) {}); }).kind(),
            ErrorKind::usage);
}

// Where files are made of pages, records are handed over there.
TEST_P(EveryFormat, ChecksItsPagesOrHasNone) {
  const auto data = open();
  std::vector<std::string> values;
  const auto report =
      data->check_pages(9, [&](const Record& record) { values.push_back(text_of(record.value)); });
  EXPECT_EQ(report.has_value(), !data->look_at_pages().empty());
  if (!report) return;
  EXPECT_TRUE(report->sound());
  EXPECT_EQ(values, report->samples ? set_.values : std::vector<std::string>());
}

TEST_P(EveryFormat, GivesAnySamplesInAnyOrder) {
  const Samples samples = Samples::open(set_.path, set_.options);
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::uint64_t> ids(random() % 60);
    for (std::uint64_t& id : ids) id = random() % kSamples;
    expect_samples(samples, ids);
  }
  std::vector<std::string> keys;
  samples.keys(
      [&](std::uint64_t, std::span<const std::byte> key) { keys.push_back(text_of(key)); });
  EXPECT_EQ(keys, set_.keys);
}

TEST_P(EveryFormat, IsReadFromMemoryAsFromFiles) {
  if (!is_files()) GTEST_SKIP() << "no URL stands for it";
  const Samples samples = Samples::open("mem://" + set_.path, set_.options);
  EXPECT_EQ(samples.entries(), kSamples);
  expect_samples(samples, {40, 3, 3, 0, 19, 20});
}

TEST_P(EveryFormat, IsReadThroughAPlugInAsFromFiles) {
  if (!is_files()) GTEST_SKIP() << "no URL stands for it";
  load_storage_plugin(std::string(FOREBAY_TEST_PLUGINS) + "/plugin_none.so");
  // Without patterns: file by file.
  const std::string& path = set_.path;
  const std::size_t brace = path.find("{0..1}");
  std::string text = "test://fine:" + path;
  if (brace != std::string::npos) {
    const std::size_t fields = std::min(path.find('#'), path.size());
    const std::string begin = path.substr(0, brace);
    const std::string end = path.substr(brace + 6, fields - brace - 6);
    text = "test://fine:" + begin + "0" + end + ",test://fine:" + begin + "1" + end +
           path.substr(fields);
  }
  const Samples samples = Samples::open(text, set_.options);
  EXPECT_EQ(samples.entries(), kSamples);
  expect_samples(samples, {40, 3, 3, 0, 19, 20});
}

TEST_P(EveryFormat, MayBeUsedByManyThreadsAndAfterAFork) {
  const Samples samples = Samples::open(set_.path, set_.options);
  const std::vector<std::uint64_t> ids{40, 1, 17, 18, 2};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back([&] { expect_samples(samples, ids); });
  }
  const pid_t child = fork();
  if (child == 0) {
    expect_samples(samples, ids);
    _exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_P(EveryFormat, IsDeliveredInEveryOrder) {
  for (const char* order : {"coalesce=3", "order=shuffled", "order=shuffled,keep=0",
                            "order=grouped,group=6", "order=in_memory,group=5,memory-ratio=0.5",
                            "order=shuffled,hold=memory", "order=shuffled,reuse=2"}) {
    for (const int ranks : {1, 2, 3, 4}) {
      SCOPED_TRACE(std::string(order) + ", " + std::to_string(ranks) + " ranks");
      LoaderOptions options = options_in(order, 8, 1);
      options.stage_bytes = 64 << 20;
      std::mutex mutex;
      std::multiset<std::uint64_t> seen;
      run_ranks(ranks, 0, [&](const auto& comm) {
        Loader loader = Loader::open(comm, set_.path, options);
        while (const auto batch = loader.next()) {
          for (const Sample& sample : batch->samples()) {
            EXPECT_EQ(text_of(sample.value), set_.values[sample.id]);
            EXPECT_EQ(text_of(sample.key), key_of(set_, sample.id));
            const std::scoped_lock lock(mutex);
            seen.insert(sample.id);
          }
        }
        comm->barrier();
      });
      EXPECT_EQ(seen.size(), kSamples * options.reuse);
      for (std::uint64_t id = 0; id < kSamples; ++id) EXPECT_EQ(seen.count(id), options.reuse);
    }
  }
}

/// Then values may tell of parts in the page cache; batches of 7 reach over the ends of groups.
TEST_P(EveryFormat, HasTheSameValuesInBatchesThatCameDecoded) {
  for (const char* order : {"coalesce=3", "order=shuffled", "order=grouped,group=6"}) {
    SCOPED_TRACE(order);
    LoaderOptions options = options_in(order, 7, 2);
    options.decode = true;
    Loader loader = Loader::open(self_communicator(), set_.path, options);
    std::uint64_t seen = 0;
    while (const auto batch = loader.next()) {
      for (const Sample& sample : batch->samples()) {
        std::vector<std::byte> value(packed_size(sample.value));
        copy_packed(sample.value, value);
        EXPECT_EQ(text_of(value), set_.values[sample.id]);
        EXPECT_EQ(text_of(sample.key), key_of(set_, sample.id));
        ++seen;
      }
      batch->check_unchanged();
    }
    EXPECT_EQ(seen, 2 * kSamples);
    EXPECT_EQ(loader.statistics().bytes_delivered, 2 * bytes_of(set_.values));
  }
}

/// After some iterations on 3 ranks, 2 ranks deliver what is left of the epoch.
TEST_P(EveryFormat, GoesOnAmidAnEpochOnAnotherNumberOfRanks) {
  for (const char* order : {"coalesce=3", "order=shuffled", "order=grouped,group=6"}) {
    SCOPED_TRACE(order);
    LoaderOptions options = options_in(order, 6, 1);
    options.stage_bytes = 64 << 20;
    std::mutex mutex;
    std::multiset<std::uint64_t> seen;
    std::string state;
    const auto take = [&](const auto& batch) {
      for (const Sample& sample : batch->samples()) {
        EXPECT_EQ(text_of(sample.value), set_.values[sample.id]);
        const std::scoped_lock lock(mutex);
        seen.insert(sample.id);
      }
    };
    run_ranks(3, 0, [&](const auto& comm) {
      Loader loader = Loader::open(comm, set_.path, options);
      for (int i = 0; i < 3; ++i) take(loader.next());
      if (comm->rank() == 0) state = loader.state();
      comm->barrier();
    });
    run_ranks(2, 0, [&](const auto& comm) {
      Loader loader = Loader::open(comm, set_.path, resume_options(state, options, 2));
      while (const auto batch = loader.next()) take(batch);
      comm->barrier();
    });
    EXPECT_EQ(seen.size(), kSamples);
    for (std::uint64_t id = 0; id < kSamples; ++id) EXPECT_EQ(seen.count(id), 1U);
  }
}

TEST_P(EveryFormat, NoticesThatAFileWasReplacedOrCut) {
  const auto data = open();
  SampleReader reader(*data, {});
  std::vector<std::uint64_t> ids(kSamples);
  for (std::uint64_t i = 0; i < kSamples; ++i) ids[i] = i;
  reader.read(ids);
  test::write_file(set_.one_file, "x");
  const Error error = test::error_from([&] { reader.read(ids); });
  EXPECT_TRUE(error.kind() == ErrorKind::changed || error.kind() == ErrorKind::io) << error.what();
  EXPECT_NE(std::string(error.what()).find(set_.one_file), std::string::npos) << error.what();
  EXPECT_EQ(test::error_from([&] { data->check_unchanged(); }).kind(), ErrorKind::changed);
}

std::string flipped(std::string value) {
  for (char& byte : value) byte = static_cast<char>(byte ^ 1);
  return value;
}

/// Other values of the same sizes take the place of `values` in the file, or these that of those.
/// Whoever makes them may set the time of writing back.
void rewrite(const std::string& path, const std::vector<std::string>& values, bool with_old_time) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes;
  bytes.assign(std::istreambuf_iterator<char>(in), {});
  for (const std::string& value : values) {
    std::string other = flipped(value);
    std::size_t at = bytes.find(value);
    if (at == std::string::npos) {
      at = bytes.find(other);
      other = value;
    }
    if (at != std::string::npos) bytes.replace(at, other.size(), other);
  }
  const auto time = std::filesystem::last_write_time(path);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a tick of the file system's clock
  std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (with_old_time) std::filesystem::last_write_time(path, time);
}

TEST_P(EveryFormat, NoticesThatAFileWasRewrittenByOneOfTheSameShape) {
  for (const bool with_old_time : {false, true}) {
    const auto data = open();
    SampleReader reader(*data, {});
    std::vector<std::uint64_t> ids(kSamples);
    for (std::uint64_t i = 0; i < kSamples; ++i) ids[i] = i;
    reader.read(ids);
    rewrite(set_.one_file, set_.values, with_old_time);
    const Error error = test::error_from([&] { data->check_unchanged(); });
    EXPECT_EQ(error.kind(), ErrorKind::changed) << error.what();
    const char* const sign = with_old_time ? "(ctime)" : "(mtime)";
    EXPECT_NE(std::string(error.what()).find(sign), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(set_.one_file), std::string::npos) << error.what();
    EXPECT_EQ(test::error_from([&] { reader.read(ids); }).kind(), ErrorKind::changed);
  }
}

TEST_P(EveryFormat, MayBeGivenOtherRightsAndAnotherName) {
  const auto data = open();
  std::filesystem::permissions(set_.one_file, std::filesystem::perms::owner_read);
  data->check_unchanged();
  std::filesystem::create_hard_link(set_.one_file, folder_.file("second name"));
  data->check_unchanged();
  std::filesystem::remove(folder_.file("second name"));
  data->check_unchanged();
}

}  // namespace
}  // namespace forebay
