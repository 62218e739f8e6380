// Where sidecars live, and how they get there.
//
//   <data file>.forebay              beside the data: made by `forebay pack` and `provenance`
//   <data file>.<name>.forebay       of a named database; bytes of the name other than letters,
//                                    digits, '-' and '_' as %XX, long names as a hash
//   $XDG_CACHE_HOME/forebay/<hash of the fingerprint>.forebay    (or ~/.cache/forebay): what `auto`
//                                    found out by itself; the same for all copies of a data set
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/lmdb/dataset_path.hpp"

namespace forebay::lmdb {

/// Beside the data, whether it exists or not. Empty where only the data are: on foreign storage.
std::string sidecar_path(const DatasetPath& dataset);
/// In the user's cache. Nothing where neither XDG_CACHE_HOME nor HOME names a directory.
std::optional<std::string> cached_sidecar_path(const std::string& fingerprint);

/// A sidecar as found. Its bytes have not been looked at.
struct FoundSidecar {
  std::string path;
  std::vector<std::byte> bytes;
};

/// The candidates in the order of preference: beside the data, then in the cache. Those that do not
/// exist, cannot be read or are larger than `most_bytes` are left out. Throws nothing.
std::vector<FoundSidecar> find_sidecars(const DatasetPath& dataset, const std::string& fingerprint,
                                        std::uint64_t most_bytes);
/// The bytes of one file. Throws not_found, io; corrupt when there are more than `most_bytes`.
std::vector<std::byte> read_sidecar_file(const std::string& path, std::uint64_t most_bytes);
/// More than any sidecar of a data set with these counts needs.
std::uint64_t most_sidecar_bytes(std::uint64_t entries, std::uint64_t leaf_pages);

/// Makes the file appear whole or not at all; makes the folder of a cache entry first. Several
/// processes may write one path: the last one wins. Throws io naming the folder.
void write_sidecar(const std::string& path, std::span<const std::byte> bytes);

}  // namespace forebay::lmdb
