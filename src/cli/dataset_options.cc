#include "cli/dataset_options.hpp"

#include <map>

#include "forebay/error.hpp"
#include "format/codec/codecs.hpp"
#include "format/convention/database_list.hpp"
#include "format/registry.hpp"
#include "program/flags.hpp"
#include "read/data_access.hpp"
#include "storage/storages.hpp"

namespace forebay {
namespace {

const std::map<std::string, Engine> kEngines{{"mmap", Engine::mmap}, {"pread", Engine::pread}};

const CodecOptions kBytes{.codec = "bytes", .schema = {}};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void add_dataset_options(CLI::App& app, DatasetOptions& options) {
  app.add_option("DATASET", options.path,
                 "LMDB directory or file, or a URL of one, either with '#NAME' for a named "
                 "database; A,B or 'PATTERN*' for databases one behind the other, x=A&y=B beside "
                 "each other; or what --format lists: PATH, 'PATTERN*' or PATH,PATH, each with "
                 "'#x=NAME,y=NAME' for fields or parts")
      ->required();
  app.add_option("--codec", options.codec.codec, "What values are")
      ->check(CLI::IsMember({"auto", "datum", "image", "raw", "number", "bytes"}) |
              CLI::Validator(
                  [](std::string& text) {
                    return text.find('=') == std::string::npos ? "no list of PART=CODEC" : "";
                  },
                  "PART=CODEC,..."))
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
  const std::string& format = options.files.format;
  const FormatOptions how = format_options(options.files, options.files.engine);
  return !find_format(format == "auto" ? recognise_files(options.path, how) : format, options.path)
              .located;
}

bool names_several_databases(const DatasetOptions& options) {
  const auto all = convention::all_databases(options.path);
  return all.size() > 1 || all[0] != options.path;
}

std::unique_ptr<DataSet> open_sample_set(const DatasetOptions& options, bool trust) {
  FormatOptions how = format_options(options.files, options.files.engine);
  how.engine = usable_engine(options.path, options.engine);
  how.schema = options.codec.schema;
  how.keeps = trust;
  how.trust_sidecars = trust;
  return open_data_set(options.path, how);
}

Engine usable_engine(const std::string& path, Engine engine) {
  return can_map(path) ? engine : Engine::pread;
}

lmdb::Database open_dataset(const DatasetOptions& options) {
  const Engine engine = usable_engine(options.path, options.engine);
  const lmdb::DatasetPath path = lmdb::resolve_dataset_path(options.path);
  return lmdb::Database::open(lmdb::open_snapshot(path, engine), path.name, true);
}

std::shared_ptr<const Codec> codec_of_first(lmdb::Database& database, const CodecOptions& options) {
  lmdb::Cursor cursor = database.tree().first();
  if (!cursor.valid()) return nullptr;
  std::uint64_t sample = 0;
  // An empty value says nothing of the others.
  while (options.codec == "auto" && database.tree().entry(cursor).value.empty()) {
    if (++sample == kMostAsked || !database.tree().next(cursor)) return make_codec(kBytes, {});
  }
  const lmdb::Entry entry = database.tree().entry(cursor);
  try {
    return make_codec(options, entry.value);
  } catch (const Error& error) {
    throw error.within(Where{.file = database.snapshot().file().path(),
                             .offset = {},
                             .sample = sample,
                             .key = printable_key(text_of(entry.key))});
  }
}

FieldBuffers::FieldBuffers(const Schema& schema) {
  for (const Field& field : schema.fields) buffers_.emplace_back(field.bytes());
  for (auto& buffer : buffers_) spans_.emplace_back(buffer);
}

}  // namespace forebay
