#include "format/lmdb/provenance/uniform_layout.hpp"

#include <algorithm>

namespace forebay::lmdb {

void UniformLayout::refuse() {
  *this = {};
  uniform_ = false;
}

void UniformLayout::add(const LeafLayout& leaf) {
  if (!uniform_) return;
  const bool runs = !leaf.runs.empty();
  if (leaves_.empty() && runs) run_pages_ = leaf.runs.front().pages;
  if (leaf.records == 0 || runs != (run_pages_ != 0)) return refuse();
  if (runs && leaf.runs.size() != leaf.records) return refuse();
  leaves_.push_back({leaf.page, records_});
  records_ += leaf.records;
  for (std::size_t slot = 0; slot < leaf.runs.size(); ++slot) {
    const LeafRun& run = leaf.runs[slot];
    if (run.pages != run_pages_ || run.slot != slot) return refuse();
    runs_.push_back(run.page);
  }
}

std::uint64_t UniformLayout::end_of(std::size_t index) const {
  return index + 1 < leaves_.size() ? leaves_[index + 1].first_record : records_;
}

bool UniformLayout::equals(std::size_t index, const LeafLayout& leaf) const {
  const Leaf& own = leaves_[index];
  if (leaf.page != own.page || leaf.records != end_of(index) - own.first_record) return false;
  if (leaf.runs.empty()) return run_pages_ == 0;
  return leaf.runs.front().pages == run_pages_ &&
         std::equal(leaf.runs.begin(), leaf.runs.end(),
                    runs_.begin() + static_cast<std::ptrdiff_t>(own.first_record),
                    [](const LeafRun& run, PageNumber page) { return run.page == page; });
}

std::uint64_t UniformLayout::first_other_run(std::size_t index, const LeafLayout& leaf) const {
  std::uint64_t record = leaves_[index].first_record;
  for (const LeafRun& run : leaf.runs) {
    if (record == end_of(index) || runs_[record] != run.page) break;
    ++record;
  }
  return record;
}

namespace {

/// Gathers the nodes of one leaf. False where a node is no plain record.
bool gather_leaf(Tree& tree, Cursor& cursor, std::uint32_t page_size, LeafLayout& leaf,
                 std::vector<LeafRun>& runs) {
  runs.clear();
  leaf = {.page = cursor.leaf().page};
  for (bool more = true; more && cursor.leaf().page == leaf.page; more = tree.next(cursor)) {
    const Node node = tree.node(cursor);
    if ((node.flags & (kNodeTree | kNodeDuplicates)) != 0) return false;
    if (node.is_overflow()) {
      const auto pages = static_cast<std::uint32_t>(overflow_pages(node.value_size, page_size));
      runs.push_back({node.overflow_page(), pages, static_cast<std::uint16_t>(leaf.records)});
    }
    ++leaf.records;
  }
  leaf.runs = runs;
  return true;
}

}  // namespace

UniformLayout walk_layout(Database& database) {
  UniformLayout layout;
  LeafLayout leaf;
  std::vector<LeafRun> runs;
  Cursor cursor = database.tree().first();
  while (cursor.valid() && layout.uniform()) {
    if (gather_leaf(database.tree(), cursor, database.page_size(), leaf, runs)) {
      layout.add(leaf);
    } else {
      layout.refuse();
    }
  }
  return layout;
}

}  // namespace forebay::lmdb
