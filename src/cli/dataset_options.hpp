// Options and look-ups that the commands about one existing data set share.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "forebay/dataset.hpp"
#include "forebay/options.hpp"
#include "forebay/storage.hpp"
#include "format/data_set.hpp"
#include "format/lmdb/database.hpp"

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

/// Whether these are files with fields (HDF5, .npy, CIFAR-10, raw) by request or by their look, not
/// LMDB. Throws io.
bool is_sample_set(const DatasetOptions& options);
/// Whether `options` name several databases, one behind the other or beside each other.
bool names_several_databases(const DatasetOptions& options);
/// Throws as open_data_set.
/// `trust`: what sidecars and the user's cache say of where samples are is taken for true.
std::unique_ptr<DataSet> open_sample_set(const DatasetOptions& options, bool trust);
/// `engine`, or pread where nothing can be mapped: on the storage of a plug-in.
Engine usable_engine(const std::string& path, Engine engine);

/// Opens the data set; a main database that only holds named ones opens too, with no records.
/// Throws as lmdb::Database::open.
lmdb::Database open_dataset(const DatasetOptions& options);

/// The codec for the data set's first record; nothing when it has none.
/// Throws as make_codec, with the place.
std::shared_ptr<const Codec> codec_of_first(lmdb::Database& database, const CodecOptions& options);

/// One buffer a field, to decode into again and again.
class FieldBuffers {
 public:
  explicit FieldBuffers(const Schema& schema);
  std::span<const std::span<std::byte>> spans() const { return spans_; }

 private:
  std::vector<std::vector<std::byte>> buffers_;
  std::vector<std::span<std::byte>> spans_;
};

}  // namespace forebay
