// Samples that are used where the page cache has them: the same bytes as when they are read,
// whatever of the file is in memory, and an error where the file is not what it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <random>

#include "forebay/dataset.hpp"
#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "tests/support/counting_source.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/page_cache.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::LmdbBuilder;
using test::OracleRecord;
using test::TemporaryFolder;

/// Values of one size, which come out of decoding as they are.
class InPlaceData {
 public:
  InPlaceData(const std::string& folder, const LmdbBuilder& builder, std::size_t bytes)
      : path_(builder.build(folder)),
        file_(folder + "/data.mdb"),
        bytes_(bytes),
        records_(test::read_with_liblmdb(path_)) {}

  const std::string& path() const { return path_; }
  const std::string& file() const { return file_; }
  std::size_t value_bytes() const { return bytes_; }
  std::uint64_t entries() const { return records_.size(); }

  LoaderOptions decoding(LoaderOptions options) const {
    options.codec = "raw";
    options.schema = "value:u8[" + std::to_string(bytes_) + "]";
    options.decode = true;
    options.stage_bytes = std::uint64_t{256} << 20;
    return options;
  }
  Loader open(const std::shared_ptr<Communicator>& comm, const LoaderOptions& options) const {
    return Loader::open(comm, path_, decoding(options));
  }
  void expect_right(std::span<const Sample> samples, std::span<const std::byte> values) const {
    ASSERT_EQ(values.size(), samples.size() * bytes_);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const OracleRecord& record = records_[samples[i].id];
      ASSERT_EQ(test::text(values.subspan(i * bytes_, bytes_)), record.value) << samples[i].id;
    }
  }
  void expect_right(const Batch& batch) const {
    expect_right(batch.samples(), batch.field(0));
    for (const Sample& sample : batch.samples()) {
      ASSERT_EQ(test::text(sample.key), records_[sample.id].key);
      ASSERT_EQ(test::text(sample.value), records_[sample.id].value);
    }
  }

 private:
  std::string path_;
  std::string file_;
  std::size_t bytes_;
  std::vector<OracleRecord> records_;
};

LoaderOptions shuffled(std::uint64_t batch, std::uint64_t epochs) {
  LoaderOptions options(OrderOptions{.batch = batch}, RunOptions{.epochs = epochs});
  options.order = OrderName::shuffled;
  options.end = OrderEnd::exact;
  return options;
}

LoaderStatistics read_all(const InPlaceData& data, const LoaderOptions& options) {
  Loader loader = data.open(self_communicator(), options);
  while (const auto batch = loader.next()) data.expect_right(*batch);
  return loader.statistics();
}

TEST(InPlace, WhatIsInMemoryIsNotRead) {
  const TemporaryFolder folder;
  const InPlaceData data(folder.file("data"), LmdbBuilder().in_order(600).values(9000), 9000);
  if (!test::bring_into_page_cache(data.file())) GTEST_SKIP() << "the system does not tell";
  for (const std::uint64_t keep : {0, 1}) {
    LoaderOptions options = shuffled(32, 2);
    options.keep = keep;
    const LoaderStatistics figures = read_all(data, options);
    EXPECT_EQ(figures.samples, 1200U);
    EXPECT_LT(figures.bytes_requested, data.entries() * data.value_bytes() / 4) << "finding them";
    options.engine = ReadEngine::pread;  // who asks for reads gets them
    EXPECT_GE(read_all(data, options).bytes_requested, 2 * data.entries() * data.value_bytes());
  }
}

TEST(InPlace, ExplainTellsWhetherSamplesMayBeUsedInPlace) {
  const TemporaryFolder folder;
  const InPlaceData data(folder.file("data"), LmdbBuilder().in_order(60).values(100), 100);
  if (!test::bring_into_page_cache(data.file())) GTEST_SKIP() << "the system does not tell";
  const auto told = testing::HasSubstr("records in the page cache are used there, not read");
  LoaderOptions options = shuffled(32, 1);
  EXPECT_THAT(data.open(self_communicator(), options).explain(), told);
  const InPlaceData large(folder.file("large"), LmdbBuilder().in_order(6).values(90'000), 90'000);
  EXPECT_THAT(large.open(self_communicator(), shuffled(3, 1)).explain(),
              testing::HasSubstr("and brought there where they are not"));
  options.engine = ReadEngine::pread;
  EXPECT_THAT(data.open(self_communicator(), options).explain(), testing::Not(told));
  options = data.decoding(shuffled(32, 1));
  options.decode = false;
  EXPECT_THAT(Loader::open(self_communicator(), data.path(), options).explain(),
              testing::Not(told));
}

/// Ids of any samples, many of them more than once.
SharedNumbers any_ids(std::mt19937_64& random, std::uint64_t entries, std::uint64_t count) {
  auto ids = std::make_shared<std::vector<std::uint64_t>>(count);
  for (std::uint64_t& id : *ids) id = random() % entries;
  return ids;
}

/// Any part of the file may be in memory or not, and leave it at any time.
TEST(InPlace, TheBytesAreThoseOfLiblmdbWhateverIsInMemory) {
  const TemporaryFolder folder;
  std::mt19937_64 random(4);
  const auto pick = [&random](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  };
  std::vector<InPlaceData> all;
  for (const std::size_t bytes :
       {1UL, 48UL, 1900UL, 3100UL, 20'000UL, 65'520UL, 65'536UL, 80'000UL}) {
    const std::string name = folder.file(std::to_string(bytes));
    all.emplace_back(name, LmdbBuilder().random_order(150).values(bytes).commit_every(40), bytes);
  }
  const auto rounds = static_cast<std::uint64_t>(test::long_cases(40));
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const InPlaceData& data = all[pick(0, all.size() - 1)];
    const int ranks = static_cast<int>(pick(1, 4));
    LoaderOptions options = shuffled(pick(static_cast<std::uint64_t>(ranks), 40), pick(1, 3));
    constexpr OrderName kOrders[] = {OrderName::shuffled, OrderName::listed, OrderName::grouped,
                                     OrderName::strided};
    constexpr OrderEnd kEnds[] = {OrderEnd::exact, OrderEnd::drop, OrderEnd::pad, OrderEnd::wrap};
    options.order = kOrders[pick(0, 3)];
    options.end = kEnds[pick(0, 3)];
    if (options.order == OrderName::listed) {
      options.ids = any_ids(random, data.entries(), pick(options.batch, 2 * data.entries()));
    }
    if (pick(0, 2) == 0) {
      options.iterations = pick(1, 20);
      options.epochs = 0;
      if (options.order == OrderName::strided) options.end.reset();
    }
    const bool in_windows =
        options.order == OrderName::shuffled || options.order == OrderName::listed;
    if (in_windows && pick(0, 3) == 0) options.reuse = 2;
    options.one_at_a_time = pick(0, 1) == 0;
    options.group = options.order == OrderName::grouped ? pick(1, 30) : 0;
    options.keep = options.order == OrderName::shuffled ? pick(0, 3) : 1;
    options.window = pick(1, 9);
    options.buffers = static_cast<int>(pick(1, 3));
    options.decode_threads = static_cast<unsigned>(pick(1, 3));
    SCOPED_TRACE("round " + std::to_string(round) + ", " + std::to_string(ranks) + " ranks, " +
                 options.to_text());
    const auto size = static_cast<off_t>(std::filesystem::file_size(data.file()));
    std::atomic<std::uint64_t> samples = 0;
    run_ranks(ranks, static_cast<int>(pick(0, 2)), [&](const auto& comm) {
      std::mt19937_64 own(round * 8 + static_cast<std::uint64_t>(comm->rank()));
      Loader loader = data.open(comm, options);
      while (const auto batch = loader.next()) {
        if (own() % 4 == 0) {
          const auto from = static_cast<off_t>(own() % static_cast<std::uint64_t>(size));
          test::drop_from_page_cache(data.file(), from, size / 3);
        }
        data.expect_right(*batch);
        samples += batch->samples().size();
      }
      comm->barrier();
    });
    if (in_windows && options.end == OrderEnd::exact && options.iterations == 0) {
      const std::uint64_t wanted = options.ids ? options.ids->size() : data.entries();
      ASSERT_EQ(samples, wanted * options.reuse * options.epochs);
    }
    if (testing::Test::HasFailure()) return;
  }
}

/// Arrays are the caller's for as long as it keeps them, past their batches and the loader.
TEST(InPlace, ArraysThatAreKeptStayAsTheyAre) {
  const TemporaryFolder folder;
  const InPlaceData data(folder.file("data"), LmdbBuilder().in_order(300).values(5000), 5000);
  struct Kept {
    std::vector<Sample> samples;
    std::span<const std::byte> values;
    std::shared_ptr<const void> owner;
  };
  std::vector<Kept> kept;
  {
    Loader loader = data.open(self_communicator(), shuffled(32, 3));
    while (const auto batch = loader.next()) {
      kept.push_back({.samples = {batch->samples().begin(), batch->samples().end()},
                      .values = batch->field(0),
                      .owner = batch->share_fields()});
    }
  }
  ASSERT_EQ(kept.size(), 30U);
  for (const Kept& batch : kept) data.expect_right(batch.samples, batch.values);
}

std::optional<Batch> batch_of_a_closed_loader(const InPlaceData& data) {
  return data.open(self_communicator(), shuffled(32, 0)).next();
}

TEST(InPlace, ABatchOutlivesItsLoader) {
  const TemporaryFolder folder;
  const InPlaceData data(folder.file("data"), LmdbBuilder().in_order(100).values(5000), 5000);
  const std::optional<Batch> batch = batch_of_a_closed_loader(data);
  data.expect_right(*batch);
}

/// Small and large values, kept together or not, in memory or not.
TEST(InPlace, AFileThatIsCutIsAnErrorAndNoWrongSample) {
  const TemporaryFolder folder;
  for (int kind = 0; kind < 8; ++kind) {
    SCOPED_TRACE(kind);
    const std::size_t bytes = kind % 2 == 0 ? 9000 : 70'000;
    const InPlaceData data(folder.file(std::to_string(kind)),
                           LmdbBuilder().in_order(600).values(bytes), bytes);
    LoaderOptions options = shuffled(16, 0);
    options.keep = kind / 2 % 2 == 0 ? 0 : 1;
    if (kind / 4 == 1) test::drop_from_page_cache(data.file());
    Loader loader = data.open(self_communicator(), options);
    data.expect_right(*loader.next());
    std::filesystem::resize_file(data.file(), std::filesystem::file_size(data.file()) / 3 + 100);
    try {
      // What had been decoded before is right.
      for (int i = 0; i < 200; ++i) {
        const auto batch = loader.next();
        data.expect_right(batch->samples(), batch->field(0));
      }
      ADD_FAILURE() << "nobody has noticed";
    } catch (const Error& error) {
      EXPECT_THAT(error.kind(), testing::AnyOf(ErrorKind::io, ErrorKind::changed)) << error.what();
    }
  }
}

/// What is used of samples, not of fields, is asked for afterwards.
TEST(InPlace, SamplesOfABatchThatCameBeforeTheCutAreNotTrusted) {
  const TemporaryFolder folder;
  const InPlaceData data(folder.file("data"), LmdbBuilder().in_order(600).values(9000), 9000);
  if (!test::bring_into_page_cache(data.file())) GTEST_SKIP() << "the system does not tell";
  for (const bool again : {false, true}) {
    LoaderOptions options = shuffled(16, 0);
    Loader loader = data.open(self_communicator(), options);
    const auto batch = loader.next();
    data.expect_right(*batch);
    batch->check_unchanged();
    std::vector<std::byte> values(batch->samples().size() * data.value_bytes());
    const std::vector<std::span<std::byte>> fields{values};
    loader.decode(*batch, fields);
    data.expect_right(batch->samples(), values);
    const std::string copy = data.file() + ".copy";
    std::filesystem::copy_file(data.file(), copy,
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(data.file(), std::filesystem::file_size(data.file()) / 3 + 100);
    const Error error = test::error_from([&] {
      if (again) return loader.decode(*batch, fields);
      batch->check_unchanged();
    });
    EXPECT_THAT(error.kind(), testing::AnyOf(ErrorKind::io, ErrorKind::changed)) << error.what();
    EXPECT_THROW(static_cast<void>(loader.next()), Error) << "on all ranks";
    std::filesystem::copy_file(copy, data.file(),
                               std::filesystem::copy_options::overwrite_existing);
  }
}

TEST(InPlace, NobodyIsToldOfSamplesOnceTheLoaderIsClosed) {
  const TemporaryFolder folder;
  const InPlaceData data(folder.file("data"), LmdbBuilder().in_order(100).values(5000), 5000);
  std::optional<Batch> batch = batch_of_a_closed_loader(data);
  EXPECT_EQ(test::error_from([&] { batch->check_unchanged(); }).kind(), ErrorKind::usage);
  batch->release();
  EXPECT_EQ(test::error_from([&] { batch->check_unchanged(); }).kind(), ErrorKind::usage);
}

}  // namespace
}  // namespace forebay
