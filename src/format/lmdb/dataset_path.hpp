// What a path to an LMDB data set may look like.
//
//   DIR          a directory with data.mdb and lock.mdb
//   FILE         a single file, with its lock in FILE-lock (MDB_NOSUBDIR)
//   either#NAME  the named database NAME; a file or directory whose name contains '#' wins
//   URL of any   "file://DIR" as DIR; "SCHEME://X" on another storage (forebay/storage.hpp):
//                the file X, or else X/data.mdb. There nothing but the data file is looked for: no
//                lock, no sidecar
#pragma once

#include <string>

namespace forebay::lmdb {

struct DatasetPath {
  std::string text;          ///< as given
  std::string data_file;     ///< the file that holds the pages
  std::string lock_file;     ///< where liblmdb keeps its locks; need not exist
  std::string environment;   ///< what liblmdb opens
  std::string name;          ///< of the named database; empty: the main one
  bool single_file = false;  ///< liblmdb needs MDB_NOSUBDIR
  bool foreign = false;      ///< not on a file system: liblmdb cannot open it, lock_file is empty
};

/// Finds the data file of `text`. Throws not_found, usage; io where another storage fails.
DatasetPath resolve_dataset_path(const std::string& text);

}  // namespace forebay::lmdb
