// Whole trainings of the small network `Quadrants`, in nodes of two ranks.
#pragma once

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "tests/train/trainer/quadrants.hpp"
#include "train/report.hpp"
#include "train/trainer.hpp"

namespace forebay::test {

/// The report of rank 0.
inline TrainReport train(int ranks, const TrainOptions& options) {
  TrainReport report;
  run_ranks(ranks, 2, [&](const std::shared_ptr<Communicator>& comm) {
    Trainer trainer(comm, options, Quadrants::make);
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

}  // namespace forebay::test
