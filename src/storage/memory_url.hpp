// What "mem://..." names: bytes that this process was given, and files that are read into memory
// whole.
//
// The names belong to the process, because a path is all that a data set is named by. A file is
// shared by all that have it open (ranks as threads among them), as long as it stays the same on
// its file system: then it is read once.
#pragma once

#include <memory>
#include <string>

#include "forebay/storage.hpp"

namespace forebay {

/// `rest` is what stands behind "mem://". Throws as open_file().
std::shared_ptr<const File> open_memory(const std::string& rest);
bool memory_has(const std::string& rest);

}  // namespace forebay
