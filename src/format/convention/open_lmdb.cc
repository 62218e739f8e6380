// The row of LMDB in the registry: one database or several, and which records are samples.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "format/convention/convention_set.hpp"
#include "format/convention/database_list.hpp"
#include "format/dataset_files.hpp"
#include "format/lmdb/dataset_path.hpp"
#include "format/lmdb/snapshot.hpp"
#include "storage/storages.hpp"
#include "storage/url.hpp"

namespace forebay::convention {
namespace {

lmdb::Database open_one(const std::string& path, const FormatOptions& options) {
  const std::string file = lmdb::resolve_dataset_path(path).data_file;
  if (!is_foreign(file)) refuse_unfinished(std::filesystem::path(file).parent_path().string());
  if (options.whole) return lmdb::Database::open_container(path, options.engine);
  return options.hold ? lmdb::Database::open(path, options.engine)
                      : lmdb::Database::open_unheld(path, options.engine);
}

lmdb::LmdbSetOptions set_options(const FormatOptions& options) {
  return {.locate = {.trust_sidecars = options.trust_sidecars,
                     .may_cache = options.keeps && !options.whole,
                     .patience = options.patience,
                     .ask = options.ask},
          .bulk = options.bulk,
          .plain_asked = options.convention == ConventionName::plain};
}

ConventionOptions convention_of(const FormatOptions& options) {
  return {.convention = options.convention,
          .order_by = options.order_by,
          .leave_out = options.leave_out,
          .keep = options.keep_records};
}

bool holds_no_samples(lmdb::Database& database) {
  return database.entries() == 0 ||
         (database.name().empty() && database.named_databases().size() == database.entries());
}

/// The only database that `text` names; null where it names several.
std::optional<lmdb::Database> open_alone(const std::string& text, const FormatOptions& options) {
  const std::vector<PartDatabases> list = find_databases(text);
  // A pattern may stand for a single database whose name only it tells.
  if (list.size() > 1 || list[0].paths.size() > 1 || list[0].paths[0] != text) return std::nullopt;
  return open_one(text, options);
}

/// The only database that `text` names, where every record of it is a sample; else nothing. The
/// first peer looks: many that open a file together would all ask the same few pages of it.
std::unique_ptr<DataSet> open_plain(const FormatRequest& request) {
  const FormatOptions& options = request.options;
  std::optional<lmdb::Database> database;
  std::optional<std::string> note;
  request.peers.together([&] {
    if (request.peers.rank() != 0) return;
    database = open_alone(request.text, options);
    if (!database) return;
    note = guess_of_plain(*database, convention_of(options));
    if (!note && options.whole && holds_no_samples(*database)) note = std::string();
  });
  const bool plain = !request.peers.told_by(0, note ? "plain" : "").empty();
  if (!plain) return nullptr;
  lmdb::LmdbSetOptions of_set = set_options(options);
  of_set.note = request.peers.told_by(0, note.value_or(""));
  if (!database) database = open_one(request.text, options);
  database->pages().count_from_here();
  return std::make_unique<lmdb::LmdbSet>(request.text, std::move(*database), std::move(of_set));
}

std::unique_ptr<DataSet> open(const FormatRequest& request) {
  if (auto plain = open_plain(request)) return plain;
  return open_by_convention(request.text, request.options);
}

/// Also by name, so that what is wrong with it can be told.
bool is_lmdb(const FirstFile& first) {
  const bool named = first.path.ends_with(".lmdb") || first.path.ends_with(".mdb");
  if (named) return true;
  return first.file ? lmdb::looks_like_lmdb(*first.file) : storage_has(first.path + "/data.mdb");
}

}  // namespace

std::unique_ptr<ConventionSet> open_by_convention(const std::string& text,
                                                  const FormatOptions& options) {
  const std::vector<PartDatabases> list = find_databases(text);
  std::vector<std::unique_ptr<lmdb::LmdbSet>> sets;
  std::vector<lmdb::Database*> databases;
  for (const PartDatabases& part : list) {
    for (const std::string& path : part.paths) {
      sets.push_back(
          std::make_unique<lmdb::LmdbSet>(path, open_one(path, options), set_options(options)));
      databases.push_back(&sets.back()->database());
    }
  }
  Convention convention = Convention::arrange(list, databases, convention_of(options));
  auto data = std::make_unique<ConventionSet>(text, std::move(sets), std::move(convention),
                                              options.order_by);
  data->check_unchanged();
  return data;
}

Format lmdb_format() {
  return {.name = "lmdb",
          .description = "LMDB databases: every record is a sample, or by a convention",
          .recognise = is_lmdb,
          .open = open,
          .names_itself = true,
          .located = true};
}

}  // namespace forebay::convention
