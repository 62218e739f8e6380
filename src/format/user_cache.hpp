// Files in the user's cache: what was found out about data sets, and can be found out again.
//
//   $XDG_CACHE_HOME/forebay/<hash of an identity>.forebay    (or ~/.cache/forebay)
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace forebay {

/// As a name for a file: 32 hexadecimal digits.
std::string hash_text(const std::string& text);

/// Nothing where neither XDG_CACHE_HOME nor HOME names a directory.
std::optional<std::string> user_cache_path(const std::string& identity);

/// All of a file. Throws not_found, io; corrupt when it has more than `most_bytes`.
std::vector<std::byte> read_small_file(const std::string& path, std::uint64_t most_bytes);

/// Makes the file appear whole or not at all, and its folder first. Several processes may write one
/// path: the last one wins. Throws io naming the folder.
void write_whole_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace forebay
