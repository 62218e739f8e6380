// What `forebay inspect` and `forebay verify` tell sample by sample: of whatever is not simply the
// records of one LMDB database.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
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

/// Reads and decodes every sample, behind all pages of LMDB databases, and prints what is wrong.
/// Throws corrupt when something is.
void verify_samples(const DatasetOptions& dataset, std::uint64_t max_faults);

}  // namespace forebay
