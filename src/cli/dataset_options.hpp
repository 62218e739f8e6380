// Options and look-ups that the commands about one existing data set share.
#pragma once

#include <memory>
#include <string>

#include "forebay/dataset.hpp"
#include "forebay/options.hpp"
#include "forebay/storage.hpp"
#include "format/data_set.hpp"

namespace CLI {
class App;
}

namespace forebay {

struct DatasetOptions {
  std::string path;
  Engine engine = Engine::mmap;
  CodecOptions codec;
  LoaderOptions files;  ///< what the files are: see add_format_flags()
  bool json = false;
};

/// DATASET, --codec, --schema, --engine, --json, --format and what belongs to it.
void add_dataset_options(CLI::App& app, DatasetOptions& options);

/// Opens all that the files hold (FormatOptions::whole). Throws as open_data_set.
/// `trust`: what sidecars and the user's cache say of where samples are is taken for true.
std::unique_ptr<DataSet> open_whole(const DatasetOptions& options, bool trust);
/// `engine`, or pread where nothing can be mapped: on the storage of a plug-in.
Engine usable_engine(const std::string& path, Engine engine);

}  // namespace forebay
