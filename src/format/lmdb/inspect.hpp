// What an LMDB data set looks like: sizes, keys, pages, and what reading it will cost.
//
// One walk over the leaves; values in overflow runs are not read.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "format/lmdb/database.hpp"
#include "format/lmdb/tree.hpp"

namespace forebay::lmdb {

/// Sizes in bytes.
struct SizeSummary {
  std::uint64_t count = 0;
  std::uint64_t total = 0;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  /// [0]: size 0; [i]: sizes from 2^(i-1) to 2^i - 1.
  std::array<std::uint64_t, 34> histogram{};

  double mean() const {
    return count == 0 ? 0.0 : static_cast<double>(total) / static_cast<double>(count);
  }
  void add(std::uint64_t size);
};

/// Pages of the whole file up to the last page of the snapshot.
struct PageSummary {
  std::uint64_t branch = 0;
  std::uint64_t leaf = 0;
  std::uint64_t overflow = 0;
  std::uint64_t free = 0;  ///< listed for use by a writer
  std::uint64_t meta = 2;
  std::uint64_t unaccounted = 0;  ///< neither in a tree nor free; 0 in a sound file

  void add(const TreeHeader& tree);
};

struct NamedDatabase {
  std::string name;
  TreeHeader header;
};

struct DatabaseReport {
  std::string path;
  std::string name;  ///< of the named database; empty: the main one
  std::uint64_t entries = 0;
  std::uint64_t txn_id = 0;
  std::uint32_t page_size = 0;
  unsigned depth = 0;
  PageNumber last_page = 0;
  bool integer_keys = false;
  bool holds_slot = false;   ///< a writer spares the snapshot while it is open
  std::string damaged_meta;  ///< what is wrong with one of the two meta pages; empty: nothing

  SizeSummary keys;
  SizeSummary values;
  /// In words: "decimal, 8 digits, zero-padded", "integer, 8 bytes", "prefix 'train/'", "mixed".
  std::string key_pattern;

  TreeHeader tree;               ///< page counts of this database alone
  PageSummary pages;             ///< of the file
  std::uint64_t used_bytes = 0;  ///< of pages that are in use by any tree, and the meta pages
  std::uint64_t file_bytes = 0;  ///< size of the file; larger when sparse or with free pages

  double records_per_leaf = 0;
  /// Bytes of leaf and overflow pages over bytes of values: what a reader of all records in order
  /// fetches for each byte that it delivers. 0 when there are no value bytes.
  double read_amplification = 0;

  std::vector<NamedDatabase> named;  ///< all named databases in the file
};

/// Opens `path` and looks at everything. A main database that only holds named ones is fine here:
/// its report has them in `named` and no entries. Throws as Database::open, and corrupt, changed.
DatabaseReport inspect(const std::string& path, Engine engine);
DatabaseReport inspect(Database& database);

/// What inspect() finds, as DataSet::look_at_pages() has it; `path` as the user names the database.
std::string report_json(Database& database, const std::string& path);

/// Names of the named databases in the main tree of `snapshot`, with their headers.
std::vector<NamedDatabase> list_named(PageReader& pages);

// The list of pages that a writer may use again: a tree whose keys are transaction numbers (u64)
// and whose values are lists of pages freed by them: a count (u64), then page numbers, largest
// first.

struct FreePages {
  std::uint64_t transaction = 0;       ///< that freed them
  std::span<const std::byte> numbers;  ///< u64 each

  std::uint64_t count() const { return numbers.size() / sizeof(PageNumber); }
  PageNumber operator[](std::uint64_t i) const {
    return load<PageNumber>(numbers, i * sizeof(PageNumber));
  }
};

/// Calls `visit` for each record of the free list of the snapshot. Throws corrupt, io, changed.
void visit_free_list(PageReader& pages, const std::function<void(const FreePages&)>& visit);

/// Checks the form of one record of the free list.
FreePages decode_free_pages(const Entry& entry, const DamageExplainer& explainer, PageNumber leaf);

}  // namespace forebay::lmdb
