// Samples: any ids in any order, as liblmdb or HDF5 have them, without MPI, locks or reader places.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <thread>

#include "forebay/error.hpp"
#include "forebay/samples.hpp"
#include "format/lmdb/dataset_path.hpp"
#include "tests/conventions/convention_data.hpp"
#include "tests/support/page_cache.hpp"
#include "tests/support/scale.hpp"

namespace forebay::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void expect_samples(const Samples& samples, const DrawData& data,
                    const std::vector<std::uint64_t>& ids) {
  std::vector<int> seen(ids.size());
  samples.read(ids, [&](const SampleView& sample) {
    ++seen[sample.position];
    ASSERT_EQ(sample.id, ids[sample.position]);
    ASSERT_EQ(text(sample.key), data.record(sample.id).key);
    ASSERT_EQ(text(sample.value), data.record(sample.id).value) << "sample " << sample.id;
  });
  EXPECT_THAT(seen, testing::Each(1));
}

std::vector<std::uint64_t> random_ids(std::uint64_t entries, std::size_t count,
                                      std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> ids(count);
  for (std::uint64_t& id : ids) id = random() % entries;
  ids.push_back(entries - 1);
  ids.push_back(0);
  ids.push_back(entries - 1);
  return ids;
}

TEST(Samples, AnyIdsInAnyOrderOfEveryConvention) {
  TemporaryFolder folder;
  for (const ConventionCase& from : every_convention(folder)) {
    for (const ReadEngine engine : {ReadEngine::automatic, ReadEngine::mmap}) {
      SCOPED_TRACE(from.name);
      LoaderOptions options = from.options;
      options.engine = engine;
      const Samples samples = Samples::open(from.data.path(), options);
      ASSERT_EQ(samples.entries(), from.data.entries());
      for (const std::size_t count : {0, 1, 5, 300}) {
        expect_samples(samples, from.data, random_ids(samples.entries(), count, count));
      }
      std::uint64_t next = 0;
      samples.keys([&](std::uint64_t id, std::span<const std::byte> key) {
        ASSERT_EQ(id, next++);
        ASSERT_EQ(text(key), from.data.record(id).key);
      });
      EXPECT_EQ(next, samples.entries());
      EXPECT_EQ(samples.key(0), from.data.record(0).key);
      const std::uint64_t outside[] = {samples.entries()};
      EXPECT_THROW(samples.read(outside, [](const SampleView&) {}), Error);
    }
  }
}

TEST(Samples, EveryDatabaseThatForebayReads) {
  TemporaryFolder folder;
  const std::vector<NamedRecipe> recipes = standard_databases();
  const std::size_t step = long_cases(1) > 1 ? 1 : 3;
  for (std::size_t i = 0; i < recipes.size(); i += step) {
    const NamedRecipe& recipe = recipes[i];
    SCOPED_TRACE(recipe.name);
    const std::string path = recipe.builder.build(folder.file(recipe.name));
    const lmdb::DatasetPath resolved = lmdb::resolve_dataset_path(path);
    const DrawData data(path, read_with_liblmdb(resolved.environment, resolved.name));
    const Samples samples = Samples::open(path);
    ASSERT_EQ(samples.entries(), data.entries());
    if (data.entries() == 0) continue;
    expect_samples(samples, data, random_ids(data.entries(), 200, 1));
  }
}

TEST(Samples, InfoSaysWhatWasRecognisedAndWhy) {
  TemporaryFolder folder;
  const std::vector<ConventionCase> cases = every_convention(folder);
  const Samples samples = Samples::open(cases[0].data.path());
  EXPECT_THAT(samples.info(),
              AllOf(HasSubstr("\"convention\":\"grouped\""), HasSubstr("\"entries\":130"),
                    HasSubstr("num-samples"), HasSubstr("image-000000001")));
  EXPECT_THAT(samples.fingerprint(), HasSubstr("part=image"));
  EXPECT_EQ(samples.parts().size(), 2U);
}

TEST(Samples, ManyProcessesReadAFolderInWhichNothingCanBeWritten) {
  TemporaryFolder folder;
  const DrawData data(folder.file("d"), LmdbBuilder().in_order(400).values(0, 3000));
  std::filesystem::remove(folder.file("d/lock.mdb"));
  std::filesystem::permissions(
      folder.file("d"), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const Samples before = Samples::open(data.path());
  expect_samples(before, data, {0, 399});
  std::vector<pid_t> children;
  for (int child = 0; child < 20; ++child) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      bool right = true;
      const auto check = [&](const SampleView& sample) {
        right = right && text(sample.value) == data.record(sample.id).value;
      };
      const auto ids = random_ids(400, 100, static_cast<std::uint64_t>(child));
      before.read(ids, check);
      Samples::open(data.path()).read(ids, check);
      ::_exit(right ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  std::filesystem::permissions(folder.file("d"), std::filesystem::perms::owner_all);
  EXPECT_FALSE(std::filesystem::exists(folder.file("d/lock.mdb")));
}

TEST(Samples, ThreadsLookUpTogether) {
  TemporaryFolder folder;
  const std::vector<ConventionCase> cases = every_convention(folder);
  const Samples samples = Samples::open(cases[0].data.path());
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      for (std::uint64_t round = 0; round < 20; ++round) {
        expect_samples(samples, cases[0].data, random_ids(130, 50, seed * 100 + round));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Samples, AWriterWhoRecyclesPagesIsNoticed) {
  TemporaryFolder folder;
  const LmdbBuilder builder = LmdbBuilder().in_order(2000).values(100, 3000);
  const DrawData data(folder.file("d"), builder);
  const Samples samples = Samples::open(data.path());
  expect_samples(samples, data, {5});
  for (int i = 0; i < 4; ++i) {
    write_records(data.path(), {{"00000005", "another " + std::to_string(i)}});
  }
  EXPECT_THROW(expect_samples(samples, data, {5}), Error);
}

/// The place that reading `ids` fails with.
Where where_it_fails(const Samples& samples, const std::vector<std::uint64_t>& ids) {
  try {
    samples.read(ids, [](const SampleView&) {});
  } catch (const Error& error) {
    return error.where();
  }
  ADD_FAILURE() << "nothing failed";
  return {};
}

TEST(Samples, AnErrorNamesTheFirstSampleThatCannotBeRead) {
  TemporaryFolder folder;
  const DrawData data(folder.file("d"), LmdbBuilder().in_order(60).values(9000, 9000));
  const std::string file = folder.file("d/data.mdb");
  const Samples samples = Samples::open(data.path());
  expect_samples(samples, data, {0, 59});  // the index is there
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  EXPECT_EQ(where_it_fails(samples, {59}).key, data.record(59).key);
  for (const auto& ids : {std::vector<std::uint64_t>{50}, {1, 50, 2}, {50, 50, 3}}) {
    const Where where = where_it_fails(samples, ids);
    EXPECT_EQ(where.file, file);
    EXPECT_EQ(where.sample, 50U);
    EXPECT_EQ(where.key, data.record(50).key);
  }
}

TEST(Samples, AnErrorOfWhoUsesASampleNamesTheDataSet) {
  TemporaryFolder folder;
  write_records(folder.file("d"), {{"0", "x"}, {"1", "y"}});
  const Samples samples = Samples::open(folder.file("d"));
  const std::uint64_t ids[] = {0, 1};
  try {
    samples.read(ids, [](const SampleView& sample) {
      throw Error(ErrorKind::corrupt, "no image", "", {.sample = sample.id});
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where().file, folder.file("d"));
    EXPECT_EQ(error.where().sample, 0U);
  }
}

/// Whether what lies behind 40 pieces of a cold file, read one after the other, is in memory then.
bool reads_ahead(const std::string& path, const std::function<void(std::uint64_t)>& read_piece,
                 std::uint64_t piece) {
  if (!drop_from_page_cache(path)) return false;
  for (std::uint64_t i = 0; i < 40; ++i) read_piece(i);
  return in_page_cache(*open_file(path, Engine::pread), 44 * piece, piece);
}

TEST(Samples, OneAfterTheOtherTheyAreReadAhead) {
  constexpr std::uint64_t kPiece = 4096;
  TemporaryFolder folder;
  const std::string path = folder.file("data");
  write_bytes(path, counting_bytes(2000 * kPiece));
  std::vector<std::byte> piece(kPiece);
  const auto file = open_file(path, Engine::pread);
  expect_reads(*file, Reads::forward);
  if (!reads_ahead(
          path, [&](std::uint64_t i) { file->read(i * kPiece, piece); }, kPiece)) {
    GTEST_SKIP() << "the system does not";
  }
  LoaderOptions options;
  options.format = "raw";
  options.schema = "x:u8[4096]";
  const Samples samples = Samples::open(path, options);
  const auto read_one = [&](std::uint64_t i) {
    samples.read(std::vector<std::uint64_t>{i}, [](const SampleView&) {});
  };
  EXPECT_TRUE(reads_ahead(path, read_one, kPiece));
}

TEST(Samples, TheCodecIsToldByTheFirstSample) {
  TemporaryFolder folder;
  write_records(folder.file("d"), {{"0", std::string(12, 'x')}, {"1", std::string(12, 'y')}});
  LoaderOptions options;
  options.codec = "raw";
  options.schema = "x:f32[3]";
  EXPECT_EQ(to_string(Samples::open(folder.file("d"), options).schema()), "x:f32[3]");
  EXPECT_TRUE(Samples::open(folder.file("d")).schema().fields.empty());
  options = {};
  options.codec = "image";
  EXPECT_THROW(Samples::open(folder.file("d"), options).schema(), Error);
}

}  // namespace
}  // namespace forebay::test
