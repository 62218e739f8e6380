#include "cli/dataset_options.hpp"

#include <map>

#include "forebay/error.hpp"
#include "program/flags.hpp"
#include "read/data_access.hpp"
#include "storage/storages.hpp"

namespace forebay {
namespace {

const std::map<std::string, Engine> kEngines{{"mmap", Engine::mmap}, {"pread", Engine::pread}};

}  // namespace

void add_dataset_options(CLI::App& app, DatasetOptions& options) {
  app.add_option("DATASET", options.path,
                 "LMDB directory or file, or a URL of one, either with '#NAME' for a named "
                 "database; A,B or 'PATTERN*' for databases one behind the other, x=A&y=B beside "
                 "each other; or what --format lists: PATH, 'PATTERN*' or PATH,PATH, each with "
                 "'#x=NAME,y=NAME' for fields or parts")
      ->required();
  app.add_option("--codec", options.codec.codec,
                 "What values are: auto, datum, image (image:rgb ...), raw, number, bytes, a type "
                 "(f32: arrays of any length), NAME:TYPE[SHAPE], or PART=CODEC,... of samples with "
                 "parts")
      ->type_name("CODEC")
      ->capture_default_str();
  app.add_option("--schema", options.codec.schema, "Expected fields, like image:u8[3x32x32]");
  app.add_option("--engine", options.engine, "How bytes are read: mmap or pread")
      ->type_name("NAME")
      ->transform(named_choice(kEngines))
      ->default_str("mmap");
  app.add_flag("--json", options.json, "Print the result as JSON");
  add_timeout_flag(app, options.files.timeout);
  add_format_flags(app, options.files);
}

std::unique_ptr<DataSet> open_mapped(const std::string& path, FormatOptions how) {
  if (!can_map(path)) how.engine = Engine::pread;
  try {
    return open_data_set(path, how);
  } catch (const Error& error) {
    // Perhaps of more files than can be mapped at once, as folders are.
    if (error.kind() != ErrorKind::unsupported || how.engine != Engine::mmap) throw;
  }
  how.engine = Engine::pread;
  return open_data_set(path, how);
}

std::unique_ptr<DataSet> open_whole(const DatasetOptions& options, bool trust) {
  FormatOptions how = format_options(options.files, options.files.engine);
  how.engine = options.engine;
  how.schema = options.codec.schema;
  how.keeps = trust;
  how.trust_sidecars = trust;
  how.whole = true;
  return open_mapped(options.path, how);
}

Engine usable_engine(const DataSet& data, Engine engine) {
  return data.whole()->is_mapped() ? engine : Engine::pread;
}

}  // namespace forebay
