// Options and look-ups that the commands about one existing data set share.
#pragma once

#include <memory>
#include <string>

#include "forebay/dataset.hpp"
#include "forebay/options.hpp"
#include "forebay/storage.hpp"
#include "format/registry.hpp"

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

/// As open_data_set, by pread where not all can be mapped: the storage of a plug-in, very many
/// files.
std::unique_ptr<DataSet> open_mapped(const std::string& path, FormatOptions how);
/// Opens all that the files hold (FormatOptions::whole). Throws as open_data_set.
/// `trust`: what sidecars and the user's cache say of where samples are is taken for true.
std::unique_ptr<DataSet> open_whole(const DatasetOptions& options, bool trust);
/// `engine`, or pread where `data` is not mapped.
Engine usable_engine(const DataSet& data, Engine engine);

}  // namespace forebay
