#include "format/lmdb/dataset_path.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "forebay/error.hpp"

namespace forebay::lmdb {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code error;
  const bool found = fs::exists(path, error);
  if (error && error != std::errc::no_such_file_or_directory &&
      error != std::errc::not_a_directory) {
    throw Error(ErrorKind::io, fmt::format("cannot look at the path: {}", error.message()),
                "check its permissions", {.file = path});
  }
  return found;
}

/// Splits "base#name" at the last '#' whose left side exists.
bool split_name(const std::string& text, std::string& base, std::string& name) {
  for (auto at = text.rfind('#'); at != std::string::npos && at > 0; at = text.rfind('#', at - 1)) {
    if (!exists(text.substr(0, at))) continue;
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
  if (exists(path.data_file)) return;
  throw Error(ErrorKind::not_found, "the directory holds no data.mdb",
              "give the directory or file of an LMDB database, or make one with 'forebay pack'",
              {.file = directory});
}

void fill_file(DatasetPath& path, const std::string& file) {
  path.data_file = file;
  const fs::path as_path(file);
  const std::string parent = as_path.has_parent_path() ? as_path.parent_path().string() : ".";
  // The data file of a directory database was named: its writers lock beside it.
  if (as_path.filename() == "data.mdb" && !exists(file + "-lock")) {
    path.environment = parent;
    path.lock_file = parent + "/lock.mdb";
    return;
  }
  path.environment = file;
  path.lock_file = file + "-lock";
  path.single_file = true;
}

}  // namespace

DatasetPath resolve_dataset_path(const std::string& text) {
  DatasetPath path;
  path.text = text;
  std::string base = text;
  if (!exists(text)) {
    if (!split_name(text, base, path.name)) {
      throw Error(ErrorKind::not_found, "no such file or directory", "check the path",
                  {.file = text});
    }
    if (path.name.empty()) {
      throw Error(ErrorKind::usage, "no database is named after the '#'",
                  "write path#name, or leave out the '#'", {.file = text});
    }
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
