#include "cli/dataset_options.hpp"

#include <map>

#include "cli/loader_flags.hpp"
#include "cli/named_choice.hpp"
#include "forebay/error.hpp"
#include "read/open_access.hpp"
#include "read/sample_set_access.hpp"

namespace forebay {
namespace {

const std::map<std::string, Engine> kEngines{{"mmap", Engine::mmap}, {"pread", Engine::pread}};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void add_dataset_options(CLI::App& app, DatasetOptions& options) {
  app.add_option("DATASET", options.path,
                 "LMDB directory or file, either with '#NAME' for a named database; or HDF5, .npy "
                 "or record files: FILE, 'PATTERN*' or FILE,FILE, each with '#x=NAME,y=NAME' for "
                 "their fields")
      ->required();
  app.add_option("--codec", options.codec.codec, "What values are")
      ->check(CLI::IsMember({"auto", "datum", "image", "raw", "bytes"}))
      ->capture_default_str();
  app.add_option("--schema", options.codec.schema, "Expected fields, like image:u8[3x32x32]");
  app.add_option("--engine", options.engine, "How bytes are read: mmap or pread")
      ->type_name("NAME")
      ->transform(named_choice(kEngines))
      ->default_str("mmap");
  app.add_flag("--json", options.json, "Print the result as JSON");
  add_format_flags(app, options.files);
}

bool is_sample_set(const DatasetOptions& options) {
  return !recognize_format(options.path, options.files).empty();
}

std::unique_ptr<SampleSource> open_sample_set(const DatasetOptions& options) {
  SampleOptions how = sample_options(options.files);
  how.engine = options.engine;
  how.schema = options.codec.schema;
  return open_samples(options.path, how);
}

lmdb::Database open_dataset(const DatasetOptions& options) {
  const lmdb::DatasetPath path = lmdb::resolve_dataset_path(options.path);
  return lmdb::Database::open(lmdb::open_snapshot(path, options.engine), path.name, true);
}

std::shared_ptr<const Codec> codec_of_first(lmdb::Database& database, const CodecOptions& options) {
  const lmdb::Cursor first = database.tree().first();
  if (!first.valid()) return nullptr;
  const lmdb::Entry entry = database.tree().entry(first);
  try {
    return make_codec(options, entry.value);
  } catch (const Error& error) {
    throw error.within(Where{.file = database.snapshot().file().path(),
                             .offset = {},
                             .sample = 0,
                             .key = printable_key(text_of(entry.key))});
  }
}

FieldBuffers::FieldBuffers(const Schema& schema) {
  for (const Field& field : schema.fields) buffers_.emplace_back(field.bytes());
  for (auto& buffer : buffers_) spans_.emplace_back(buffer);
}

}  // namespace forebay
