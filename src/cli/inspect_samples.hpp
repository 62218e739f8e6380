// forebay inspect, for all that is not LMDB.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/dataset_options.hpp"

namespace forebay {

struct InspectSamplesOptions {
  std::uint64_t group = 256;  ///< samples whose reads are counted
  std::string dump;           ///< ids whose bytes go to stdout; "all"
};

/// --group, --dump
void add_inspect_samples_options(CLI::App& app, InspectSamplesOptions& options);

/// Prints what the data set holds and what reading it costs, or dumps samples.
void inspect_samples(const DatasetOptions& dataset, const InspectSamplesOptions& options);

}  // namespace forebay
