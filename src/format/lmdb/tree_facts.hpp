// What an index has to know of the tree that it is for: plain numbers, from the meta page.
#pragma once

#include <cstdint>
#include <string>

#include "format/lmdb/database.hpp"

namespace forebay::lmdb {

struct TreeFacts {
  std::string file;         ///< path of the data file, for messages
  std::string fingerprint;  ///< Database::fingerprint()
  std::uint64_t entries = 0;
  std::uint64_t leaf_pages = 0;
  std::uint64_t overflow_pages = 0;
  std::uint32_t page_size = 0;
  std::uint16_t tree_flags = 0;  ///< how keys compare
  PageNumber end_page = 0;       ///< pages from here on are past the snapshot or the file
};

/// Of a database that passed its opening checks, so the counts are bounded by the file's pages.
TreeFacts facts_of(Database& database);

}  // namespace forebay::lmdb
