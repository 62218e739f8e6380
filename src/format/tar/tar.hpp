// WebDataset's tar shards: consecutive members of one name are a sample, their extensions its
// parts.
//
//   0001.jpg 0001.cls 0002.jpg 0002.cls ...
//
// One walk from header to header finds them; content is not read. Compressed archives are refused.
#pragma once

#include <memory>

#include "format/member_set.hpp"
#include "format/registry.hpp"

namespace forebay::tar {

/// Goes through the headers of `file`, which is number `number` of a data set. Throws corrupt,
/// unsupported, io, naming file and offset.
void find_members(const File& file, std::uint32_t number, FoundMembers& found);

Format tar_format();

}  // namespace forebay::tar
