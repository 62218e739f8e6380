// Where the loader's threads run changes nothing of what they deliver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "core/placement.hpp"
#include "forebay/error.hpp"
#include "forebay/placement.hpp"
#include "tests/loader/decoded_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::DecodedData;
using test::TemporaryFolder;
using ::testing::HasSubstr;

/// The cores on which the threads of each name may run now.
std::map<std::string, std::set<std::vector<int>>> cores_by_name() {
  std::map<std::string, std::set<std::vector<int>>> cores;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    cpu_set_t set;
    if (::sched_getaffinity(std::stoi(task.path().filename()), sizeof(set), &set) != 0) continue;
    std::vector<int> numbers;
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) numbers.push_back(i);
    }
    cores[name].insert(numbers);
  }
  return cores;
}

std::vector<std::uint64_t> samples_of(const DecodedData& data, const LoaderOptions& options) {
  std::vector<std::uint64_t> samples;
  Loader loader = Loader::open(self_communicator(), data.path(), data.decoding(options));
  while (const auto batch = loader.next()) {
    for (const Sample& sample : batch->samples()) samples.push_back(sample.id);
  }
  return samples;
}

TEST(LoaderPlacement, ThreadsRunWhereThePlanSays) {
  const TemporaryFolder folder;
  const DecodedData data(folder.file("data"), 100);
  const int core = available_cores().back();
  LoaderOptions options(OrderOptions{.batch = 4});
  options.engine = ReadEngine::pread;
  options.strategy = Strategy::lmm_dio;
  options.decode_threads = 2;
  options.placement = "io:" + std::to_string(core) + "/decode:" + std::to_string(core);
  Loader loader = Loader::open(self_communicator(), data.path(), data.decoding(options));
  ASSERT_TRUE(loader.next());
  auto cores = cores_by_name();
  for (const char* name : {"fb-read", "fb-io-0", "fb-decode", "fb-decode-1"}) {
    EXPECT_EQ(cores[name], (std::set<std::vector<int>>{{core}})) << name;
  }
  EXPECT_THAT(loader.explain(), HasSubstr("decode, io on " + std::to_string(core)));
}

TEST(LoaderPlacement, ChangesNothingOfWhatIsDelivered) {
  const TemporaryFolder folder;
  const DecodedData data(folder.file("data"), 100);
  LoaderOptions options(OrderOptions{.batch = 7}, RunOptions{.epochs = 1});
  const auto expected = samples_of(data, options);
  for (const char* placement : {"partition", "shared"}) {
    options.placement = placement;
    EXPECT_EQ(samples_of(data, options), expected) << placement;
  }
}

TEST(LoaderPlacement, OfOneRankIsItsOwnMatter) {
  const TemporaryFolder folder;
  const DecodedData data(folder.file("data"), 100);
  run_ranks(2, 0, [&](const std::shared_ptr<Communicator>& comm) {
    LoaderOptions options(OrderOptions{.batch = 4}, RunOptions{.epochs = 1});
    options.placement = comm->rank() == 0 ? "partition" : "shared";
    Loader loader = Loader::open(comm, data.path(), data.decoding(options));
    while (loader.next()) {
    }
  });
}

TEST(LoaderPlacement, ACoreThatIsNotThereIsAnErrorOfAllRanks) {
  const TemporaryFolder folder;
  const DecodedData data(folder.file("data"), 10);
  LoaderOptions options(OrderOptions{.batch = 2});
  options.placement = "io:60000";
  try {
    Loader::open(self_communicator(), data.path(), options);
    FAIL() << "core 60000 does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), HasSubstr("core 60000"));
  }
}

}  // namespace
}  // namespace forebay
