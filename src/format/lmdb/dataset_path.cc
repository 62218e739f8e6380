#include "format/lmdb/dataset_path.hpp"

#include <filesystem>

#include "forebay/error.hpp"
#include "storage/storages.hpp"
#include "storage/url.hpp"

namespace forebay::lmdb {
namespace {

namespace fs = std::filesystem;

/// Splits "base#name" at the last '#' whose left side exists.
bool split_name(const std::string& text, std::string& base, std::string& name) {
  for (auto at = text.rfind('#'); at != std::string::npos && at > 0; at = text.rfind('#', at - 1)) {
    if (!storage_has(text.substr(0, at))) continue;
    base = text.substr(0, at);
    name = text.substr(at + 1);
    return true;
  }
  return false;
}

void fill_directory(DatasetPath& path, const std::string& directory) {
  path.environment = directory;
  path.data_file = directory + "/data.mdb";
  path.lock_file = directory + "/lock.mdb";
  if (storage_has(path.data_file)) return;
  throw Error(ErrorKind::not_found, "the directory holds no data.mdb",
              "give the directory or file of an LMDB database, or make one with 'forebay pack'",
              {.file = directory});
}

void fill_file(DatasetPath& path, const std::string& file) {
  path.data_file = file;
  const fs::path as_path(file);
  const std::string parent = as_path.has_parent_path() ? as_path.parent_path().string() : ".";
  // The data file of a directory database was named: its writers lock beside it.
  if (as_path.filename() == "data.mdb" && !storage_has(file + "-lock")) {
    path.environment = parent;
    path.lock_file = parent + "/lock.mdb";
    return;
  }
  path.environment = file;
  path.lock_file = file + "-lock";
  path.single_file = true;
}

void require_name(const DatasetPath& path) {
  if (!path.name.empty()) return;
  throw Error(ErrorKind::usage, "no database is named after the '#'",
              "write path#name, or leave out the '#'", {.file = path.text});
}

/// The data file of a base on another storage, which may have no directories; empty: there is none.
std::string foreign_data_file(const std::string& base) {
  if (storage_has(base)) return base;
  const std::string inside = base + (base.ends_with('/') ? "data.mdb" : "/data.mdb");
  return storage_has(inside) ? inside : std::string();
}

DatasetPath resolve_foreign(const std::string& text) {
  DatasetPath path{.text = text};
  path.foreign = true;
  path.data_file = foreign_data_file(text);
  bool named = false;
  for (auto at = text.rfind('#'); path.data_file.empty() && at != std::string::npos && at > 0;
       at = text.rfind('#', at - 1)) {
    path.data_file = foreign_data_file(text.substr(0, at));
    path.name = text.substr(at + 1);
    named = true;
  }
  if (path.data_file.empty()) {
    throw Error(ErrorKind::not_found, "no such file on this storage, nor data.mdb in it",
                "check the path", {.file = text});
  }
  if (named) require_name(path);
  return path;
}

}  // namespace

DatasetPath resolve_dataset_path(const std::string& url) {
  if (is_foreign(url)) return resolve_foreign(url);
  const std::string text = without_file_scheme(url);
  DatasetPath path;
  path.text = text;
  std::string base = text;
  if (!storage_has(text)) {
    if (!split_name(text, base, path.name)) {
      throw Error(ErrorKind::not_found, "no such file or directory", "check the path",
                  {.file = text});
    }
    require_name(path);
  }
  while (base.size() > 1 && base.back() == '/') base.pop_back();
  if (fs::is_directory(base)) {
    fill_directory(path, base);
  } else {
    fill_file(path, base);
  }
  return path;
}

}  // namespace forebay::lmdb
