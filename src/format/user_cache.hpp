// Files in the user's cache: what was found out about data sets, and can be found out again.
//
//   $XDG_CACHE_HOME/forebay/<hash of an identity>.forebay    (or ~/.cache/forebay)
//
// Neither there nor beside data sets a link is followed in a directory that others may write to: it
// could lead anywhere. Elsewhere the folder of the cache may be a link, to one of this user alone
// that holds nothing else.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace forebay {

/// As a name for a file: 32 hexadecimal digits.
std::string hash_text(const std::string& text);

/// Nothing where neither XDG_CACHE_HOME nor HOME names a directory, and where the directory in it
/// belongs to another user, or is a link that another user may have made, or one to a folder that
/// others may write to, or that holds other files.
std::optional<std::string> user_cache_path(const std::string& identity);

/// All of a file, which where others may write to its directory is no link, and of this user, root
/// or the directory's owner. Throws not_found, io; corrupt when it has more than `most_bytes`.
/// `remedy` says what to do then.
std::vector<std::byte> read_small_file(
    const std::string& path, std::uint64_t most_bytes,
    const std::string& remedy = "make it anew with 'forebay provenance'");

/// Makes the file appear whole or not at all, and its folder first. Several processes may write one
/// path: the last one wins. Throws io naming the folder.
void write_whole_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace forebay
