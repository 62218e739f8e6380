// Whole trainings of a small network, `Quadrants` unless another is given, in nodes of two ranks.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "tests/train/trainer/quadrants.hpp"
#include "train/trainer.hpp"

namespace forebay::test {

/// The report of rank 0.
inline TrainReport train(int ranks, const TrainOptions& options,
                         const NetworkFactory& factory = Quadrants::make) {
  TrainReport report;
  run_ranks(ranks, 2, [&](const std::shared_ptr<Communicator>& comm) {
    Trainer trainer(comm, options, factory);
    const TrainReport mine = trainer.run();
    if (comm->rank() == 0) report = mine;
  });
  return report;
}

/// The losses of all iterations, by way of the file `log`.
inline std::vector<double> curve(int ranks, TrainOptions options, const std::string& log) {
  options.log = log;
  train(ranks, options);
  std::vector<double> losses;
  std::ifstream in(options.log);
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json["event"] == "iteration") losses.push_back(json["loss"].get<double>());
  }
  return losses;
}

/// What each rank failed with; all must fail. `factory_of` has the network of a rank.
inline std::vector<std::string> failures(
    int ranks, const TrainOptions& options,
    const std::function<NetworkFactory(int rank)>& factory_of = [](int) {
      return Quadrants::make;
    }) {
  std::mutex mutex;
  std::vector<std::string> messages;
  run_ranks(ranks, 2, [&](const std::shared_ptr<Communicator>& comm) {
    try {
      Trainer trainer(comm, options, factory_of(comm->rank()));
      trainer.run();
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      messages.emplace_back(error.what());
    }
  });
  EXPECT_EQ(messages.size(), static_cast<std::size_t>(ranks));
  return messages;
}

}  // namespace forebay::test
