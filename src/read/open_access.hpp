// Which kind of data set is it? The one place in which formats are told apart.
#pragma once

#include <memory>
#include <string>

#include "read/data_access.hpp"

namespace forebay {

/// As `options` say or as the files look: "hdf5", "npy", "cifar10" or "raw"; for LMDB empty where
/// every record of one database is a sample, else a word that make_access() knows. Local; of LMDB
/// it looks at a few keys. Throws io, and what opening an LMDB database throws.
std::string recognize_format(const std::string& path, const LoaderOptions& options);

DataKind kind_of(const std::string& format);

/// Access to data of a format that recognize_format() names; opens nothing yet.
std::shared_ptr<DataAccess> make_access(const std::string& path, const LoaderOptions& options,
                                        const std::string& format);

}  // namespace forebay
