#include "train/checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "forebay/error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

struct Arrays {
  std::vector<float> parameters{1, 2, 3};
  std::vector<float> statistics{4, 5};
  std::vector<float> solver{6, 7, 8, 9, 10, 11};

  TrainingState state() { return {parameters, statistics, solver}; }
  void clear() {
    for (auto* array : {&parameters, &statistics, &solver}) array->assign(array->size(), 0);
  }
  bool operator==(const Arrays&) const = default;
};

CheckpointHeader header() {
  return {.net = "lenet",
          .input = {1, 28, 28},
          .outputs = 10,
          .solver = "adam",
          .parameters = 3,
          .statistics = 2,
          .solver_state = 6,
          .seed = 7,
          .iteration = 938,
          .batches = 1000,
          .epoch = 1,
          .loss_sum = 0.1,
          .loss_count = 12,
          .growth = {.factor = 4, .grown_at = 900, .tested_at = 938, .accuracy = 0.5},
          .train_state = R"({"iterations":938})",
          .test_state = ""};
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Reads header and arrays; the kind of error, or nothing.
std::optional<ErrorKind> failure_of_reading(const std::string& path) {
  Arrays arrays;
  try {
    read_checkpoint_header(path);
    read_checkpoint(path, arrays.state());
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(path));
    return error.kind();
  }
  return {};
}

class Checkpoint : public testing::Test {
 protected:
  std::string write() {
    return write_checkpoint(directory_.file("new"), header(), arrays_.state());
  }

  test::TemporaryFolder directory_;
  Arrays arrays_;
};

TEST_F(Checkpoint, GivesBackWhatWasWritten) {
  const std::string path = write();
  EXPECT_EQ(read_checkpoint_header(path), header());
  Arrays read;
  read.clear();
  read_checkpoint(path, read.state());
  EXPECT_EQ(read, arrays_);
}

TEST_F(Checkpoint, LeavesNothingElseBehind) {
  write();
  write();
  const auto entries = std::filesystem::directory_iterator(directory_.file("new"));
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(Checkpoint, LatestIsTheHighestIteration) {
  for (const std::uint64_t iteration : {900U, 10'000U, 20U}) {
    CheckpointHeader other = header();
    other.iteration = iteration;
    write_checkpoint(directory_.path(), other, arrays_.state());
  }
  EXPECT_THAT(latest_checkpoint(directory_.path()), EndsWith("/000000010000.checkpoint"));
}

TEST_F(Checkpoint, LatestOfNothingIsNotFound) {
  for (const std::string& directory : {directory_.path(), directory_.file("missing")}) {
    try {
      latest_checkpoint(directory);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::not_found);
      EXPECT_THAT(error.what(), HasSubstr(directory));
    }
  }
}

TEST_F(Checkpoint, CutAnywhereIsCorrupt) {
  const std::string path = write();
  const std::string whole = read_file(path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_file(path, whole.substr(0, size));
    EXPECT_EQ(failure_of_reading(path), ErrorKind::corrupt) << size;
  }
  write_file(path, whole + 'x');
  EXPECT_EQ(failure_of_reading(path), ErrorKind::corrupt);
}

TEST_F(Checkpoint, ADamagedByteAnywhereIsCorrupt) {
  const std::string path = write();
  const std::string whole = read_file(path);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    write_file(path, damaged);
    EXPECT_EQ(failure_of_reading(path), ErrorKind::corrupt) << at;
  }
}

TEST_F(Checkpoint, ALyingHeaderIsCorrupt) {
  const std::string path = write();
  const std::string whole = read_file(path);
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{1} << 20, UINT64_MAX}) {
    std::string lying = whole;
    std::memcpy(lying.data() + 16, &length, sizeof length);
    write_file(path, lying);
    EXPECT_EQ(failure_of_reading(path), ErrorKind::corrupt) << length;
  }
}

TEST_F(Checkpoint, OfTheFirstVersionIsRefusedAndSaysSo) {
  const std::string path = write();
  std::string old = read_file(path);
  old.replace(old.find("TRAIN-2"), 7, "TRAIN-1");
  write_file(path, old);
  try {
    read_checkpoint_header(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("version 1"));
    EXPECT_THAT(error.what(), HasSubstr(path));
  }
}

TEST_F(Checkpoint, OfAnotherSolverIsCorruptForIt) {
  const std::string path = write();
  Arrays other;
  other.solver.resize(3);
  EXPECT_THROW(read_checkpoint(path, other.state()), Error);
}

TEST_F(Checkpoint, OfAnotherNetworkIsCorruptForIt) {
  const std::string path = write();
  Arrays larger;
  larger.parameters.push_back(0);
  larger.solver.push_back(0);
  EXPECT_THROW(read_checkpoint(path, larger.state()), Error);
}

TEST_F(Checkpoint, OldOnesAreThinnedAndThoseOfOtherRunsStay) {
  const std::string folder = directory_.file("thinned");
  for (const std::uint64_t iteration : {5, 10, 15, 20, 900}) {
    CheckpointHeader at = header();
    at.iteration = iteration;
    write_checkpoint(folder, at, arrays_.state());
  }
  write_file(folder + "/best.checkpoint", "of somebody else");
  EXPECT_EQ(thin_checkpoints(folder, 20, 4), 0U);
  EXPECT_EQ(thin_checkpoints(folder, 20, 2), 2U);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names,
              testing::UnorderedElementsAre("000000000015.checkpoint", "000000000020.checkpoint",
                                            "000000000900.checkpoint", "best.checkpoint"));
}

TEST_F(Checkpoint, WhatKilledRunsHaveLeftIsRemovedOnceNobodyWritesIt) {
  const std::string folder = directory_.path();
  const std::string old = folder + "/000000000015.checkpoint.12-0a.part";
  const std::string fresh = folder + "/000000000016.checkpoint.13-0b.part";
  for (const std::string& path : {old, fresh, folder + "/other.part"}) write_file(path, "half");
  using Clock = std::filesystem::file_time_type::clock;
  std::filesystem::last_write_time(old, Clock::now() - std::chrono::hours(2));
  std::filesystem::last_write_time(folder + "/other.part", Clock::now() - std::chrono::hours(2));
  remove_unfinished_checkpoints(folder);
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(fresh));
  EXPECT_TRUE(std::filesystem::exists(folder + "/other.part"));
  EXPECT_NO_THROW(remove_unfinished_checkpoints(folder + "/none"));
}

TEST_F(Checkpoint, InADirectoryThatCannotBeMadeIsAnIoError) {
  write_file(directory_.file("file"), "");
  try {
    write_checkpoint(directory_.file("file/below"), header(), arrays_.state());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_THAT(error.what(), HasSubstr("file/below"));
  }
}

TEST(CheckpointHeader, RefusesTextThatIsNone) {
  const std::string good = to_text(header());
  EXPECT_EQ(parse_checkpoint_header(good), header());
  for (const std::string text : {"", "{}", "[]", "null", R"({"net":5})"}) {
    EXPECT_THROW(parse_checkpoint_header(text), Error) << text;
  }
  std::string negative = good;
  negative.replace(negative.find("\"iteration\":938"), 15, "\"iteration\":-38");
  EXPECT_THROW(parse_checkpoint_header(negative), Error);
}

}  // namespace
}  // namespace forebay
