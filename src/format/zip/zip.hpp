// Zip archives: what the central directory at the end of each lists.
//
//   [local header, bytes][local header, bytes] ... [central directory][its end]
//                                                   name, sizes, CRC-32, offset of the local header
//
//   1.jpg 1.cls 2.jpg 2.cls     parts by extension, samples by what comes before it, as in tar
//   a/1.jpg a/2.jpg b/1.jpg     nothing but images, in two folders or more: image and label, in the
//                               order of folders of files (format/folder)
//
// Local headers are read with the bytes behind them, not at open. Bytes that are stored are used in
// place, deflated ones are decoded; both are checked.
#pragma once

#include <span>
#include <vector>

#include "format/member_set.hpp"
#include "format/registry.hpp"

namespace forebay::zip {

/// The samples of these archives. Throws corrupt, unsupported, io, naming file and offset.
FoundMembers find_members(const DataFiles& files);

Format zip_format();

}  // namespace forebay::zip
