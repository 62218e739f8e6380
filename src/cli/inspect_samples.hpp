// forebay inspect, for files with fields: HDF5, .npy, CIFAR-10, raw records.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/dataset_options.hpp"
#include "format/open_samples.hpp"

namespace forebay {

struct InspectSamplesOptions {
  SampleOptions samples;
  std::uint64_t group = 256;  ///< samples whose reads are counted
  std::string dump;           ///< ids whose bytes go to stdout; "all"
};

/// --format, --header-bytes, --record-bytes, --big-endian, --group, --dump
void add_inspect_samples_options(CLI::App& app, InspectSamplesOptions& options);

/// Whether `dataset` is a data set for inspect_samples(): its format was named, or is recognized.
bool wants_inspect_samples(const std::string& path, const InspectSamplesOptions& options);

/// Prints what the data set holds and what reading it costs, or dumps samples.
void inspect_samples(const DatasetOptions& dataset, InspectSamplesOptions options);

}  // namespace forebay
