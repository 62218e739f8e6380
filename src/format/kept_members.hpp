// Data sets whose files have to be walked through to find their samples: by all who open them, each
// a part of the files, and once, as what was found is kept in the user's cache.
//
//   "FBMEMB1\n"   digest of all that follows   identity   what FoundMembers::write() says
//
// The identity is of the format, and of each file its size, inode, times of change (also that which
// no program sets back), first and last bytes. What does not fit it, or its own digest, is not
// used, with one warning; what a kept index says of places in files is checked when it is used, as
// always. Nothing is kept of files that no file system has, nor of those that were changed just
// now: what is changed next might look the same.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/member_set.hpp"
#include "format/registry.hpp"

namespace forebay {

/// Finds the samples of `file`, which is number `number` of a data set. Throws corrupt,
/// unsupported, io.
using WalkFile = std::function<void(const File& file, std::uint32_t number, FoundMembers& found)>;

/// A data set of that format. Collective over the peers of `request`.
std::unique_ptr<DataSet> open_walked(const FormatRequest& request, const std::string& format,
                                     const WalkFile& walk);

/// Who the files are; empty where nothing may be kept of them.
std::string identity_of(const std::string& format, const DataFiles& files);
std::vector<std::byte> kept_bytes(const std::string& identity, const FoundMembers& found);
/// Throws corrupt for bytes that are not whole, and for those of other files.
FoundMembers from_kept_bytes(std::span<const std::byte> bytes, const std::string& identity,
                             std::uint64_t files);

}  // namespace forebay
