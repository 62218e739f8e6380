// Ranks that are processes: the contracts, and a process that is killed, after which the others'
// next call says which rank is gone. Ranks are this program, started again for the cases below that
// are not run otherwise.
//
// By hand, between nodes with a network between them (the folder must be empty):
//
//   FOREBAY_TEST_FOLDER=/tmp/net bench/network_nodes.py --nodes 3 --rate 10gbit --
//       build/release/tests/comm_test --gtest_also_run_disabled_tests
//       --gtest_filter=NetProcess.DISABLED_KeepsTheContracts
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "comm/failure_board.hpp"
#include "core/clock.hpp"
#include "forebay/connect.hpp"
#include "forebay/error.hpp"
#include "tests/support/communicator_contract.hpp"
#include "tests/support/exchange_contract.hpp"
#include "tests/support/nonblocking_contract.hpp"
#include "tests/support/summation_contract.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using ::testing::HasSubstr;
constexpr int kRanks = 3;
constexpr int kVictim = 1;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// Calls until it fails; seconds since the last call that went well.
double call_until_failure(Communicator& comm, const std::string& way) {
  std::unique_ptr<FailureBoard> board;
  std::shared_ptr<Communicator> part;
  if (way == "board") {
    part = comm.split(0, comm.rank());
    board = std::make_unique<FailureBoard>(part, part->split_by_node());
  }
  comm.barrier();
  if (comm.rank() == kVictim) {
    if (way == "worker" && fork() == 0) {
      std::this_thread::sleep_for(std::chrono::seconds(20));  // it outlives the rank
      _exit(0);
    }
    std::raise(SIGKILL);
  }
  const double begin = now_seconds();
  while (now_seconds() - begin < 20) {
    if (way == "send") {
      comm.send(kVictim, {});
    } else if (way == "receive") {
      comm.try_receive(kVictim);
    } else if (way == "board") {
      board->poll();
      board->check();
    } else {
      comm.barrier();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return 20;
}

/// As the test, or Open MPI's launcher, has said.
std::shared_ptr<Communicator> world_of_processes() {
  const auto rendezvous = file_rendezvous(variable("FOREBAY_TEST_FOLDER"));
  const bool launched = std::getenv("OMPI_COMM_WORLD_RANK") != nullptr;
  const int rank = std::stoi(variable(launched ? "OMPI_COMM_WORLD_RANK" : "FOREBAY_TEST_RANK"));
  const int size = launched ? std::stoi(variable("OMPI_COMM_WORLD_SIZE")) : kRanks;
  return connect_ranks(*rendezvous,
                       {.rank = rank, .size = size, .timeout = std::chrono::seconds(60)});
}

TEST(NetProcess, DISABLED_KeepsTheContracts) {
  const auto world = world_of_processes();
  test::check_communicator(*world);
  test::check_nonblocking(*world);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    test::check_fetches(world, {.seed = seed, .longest_sample = 30'000});
  }
  test::check_swapping(world, {.seed = 7, .buffers = 2, .generations = 4});
  constexpr std::size_t kLengths[] = {1, 5000};
  for (const auto algorithm :
       {SyncAlgorithm::mpi, SyncAlgorithm::direct, SyncAlgorithm::two_level}) {
    test::check_sums(*world, {.algorithm = algorithm, .largest = std::size_t{4} << 20}, kLengths);
  }
}

TEST(NetProcess, DISABLED_IsARankThatMayDie) {
  const auto world = world_of_processes();
  const int rank = world->rank();
  const double begin = now_seconds();
  std::string text = "nothing was thrown";
  try {
    call_until_failure(*world, variable("FOREBAY_TEST_WAY"));
  } catch (const Error& error) {
    text = error.what();
    if (now_seconds() - begin > 3) text += " (late)";
  }
  std::ofstream(variable("FOREBAY_TEST_FOLDER") + "/said-" + std::to_string(rank)) << text;
}

/// `way`: of its end; empty: it keeps the contracts.
pid_t start_rank(const std::string& folder, int rank, const std::string& way, int per_node) {
  std::vector<std::string> environment{"FOREBAY_TEST_FOLDER=" + folder,
                                       "FOREBAY_TEST_RANK=" + std::to_string(rank),
                                       "FOREBAY_TEST_WAY=" + way};
  if (per_node > 0) environment.push_back("FOREBAY_RANKS_PER_NODE=" + std::to_string(per_node));
  for (char** word = environ; *word != nullptr; ++word) {
    if (std::string(*word).rfind("GTEST_", 0) != 0) environment.emplace_back(*word);
  }
  const std::string name =
      way.empty() ? "DISABLED_KeepsTheContracts" : "DISABLED_IsARankThatMayDie";
  std::vector<std::string> command{"rank", "--gtest_also_run_disabled_tests",
                                   "--gtest_filter=NetProcess." + name, "--gtest_brief=1"};
  const auto pointers = [](std::vector<std::string>& words) {
    std::vector<char*> result;
    for (auto& word : words) result.push_back(word.data());
    result.push_back(nullptr);
    return result;
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!way.empty()) posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  EXPECT_EQ(posix_spawn(&child, "/proc/self/exe", &actions, nullptr, pointers(command).data(),
                        pointers(environment).data()),
            0);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

TEST(NetProcess, RanksKeepTheContracts) {
  for (const int per_node : {0, 2}) {
    const test::TemporaryFolder folder;
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.push_back(start_rank(folder.path(), rank, "", per_node));
    }
    for (const pid_t rank : ranks) {
      int status = -1;
      waitpid(rank, &status, 0);
      EXPECT_EQ(status, 0) << per_node << " ranks a node";
    }
  }
}

class NetDeath : public ::testing::TestWithParam<std::pair<const char*, int>> {};

INSTANTIATE_TEST_SUITE_P(Ways, NetDeath,
                         ::testing::Values(std::pair("barrier", 0), std::pair("send", 0),
                                           std::pair("receive", 0), std::pair("worker", 0),
                                           std::pair("board", 0), std::pair("board", 1)),
                         [](const auto& way) {
                           return way.param.first + std::to_string(way.param.second);
                         });

TEST_P(NetDeath, TheOthersNextCallNamesTheRank) {
  const test::TemporaryFolder folder;
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(start_rank(folder.path(), rank, GetParam().first, GetParam().second));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    int status = 0;
    ASSERT_EQ(waitpid(ranks[static_cast<std::size_t>(rank)], &status, 0),
              ranks[static_cast<std::size_t>(rank)]);
    if (rank == kVictim) {
      EXPECT_TRUE(WIFSIGNALED(status));
      continue;
    }
    std::ostringstream said;
    said << std::ifstream(folder.file("said-" + std::to_string(rank))).rdbuf();
    EXPECT_THAT(said.str(), HasSubstr("rank 1"));
    EXPECT_THAT(said.str(), ::testing::Not(HasSubstr("late")));
  }
}

}  // namespace
}  // namespace forebay
