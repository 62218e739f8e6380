#include "format/lmdb/provenance/record_tree.hpp"

#include <algorithm>

namespace forebay::lmdb {

RecordTree::RecordTree(const Recipe& recipe)
    : record_(footprint(recipe)), room_(page_room(recipe.page_size)), append_(recipe.append) {}

RecordTree::EdgePage RecordTree::new_page(PageAllocator& pages) {
  return {.page = pages.allocate(1), .dirty = true};
}

std::uint64_t RecordTree::put(PageAllocator& pages, std::uint64_t most) {
  completed_count_ = 0;
  if (empty()) {
    edge_[0] = new_page(pages);
    depth_ = 1;
    leaf_pages_ = 1;
  } else if (!edge_[0].dirty) {
    touch_edge(pages);
  }
  const std::uint32_t fitting = (room_ - edge_[0].used) / record_.leaf_bytes;
  if (fitting == 0) split_leaf(pages);
  const auto count =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(std::max(fitting, 1U), most));
  place(pages, count);
  return count;
}

void RecordTree::touch_edge(PageAllocator& pages) {
  // A page is dirty only if its parent is, so the clean ones are those below some level.
  for (unsigned level = depth_; level-- > 0;) {
    EdgePage& page = edge_[level];
    if (page.dirty) continue;
    const PageNumber copy = pages.allocate(1);
    pages.release(page.page);
    page.page = copy;
    page.dirty = true;
  }
}

void RecordTree::split_leaf(PageAllocator& pages) {
  const EdgePage sibling = new_page(pages);
  ++leaf_pages_;
  link(pages, 1);
  completed_page_ = edge_[0].page;
  completed_count_ = edge_[0].count;
  completed_runs_.swap(runs_);
  runs_.clear();
  edge_[0] = sibling;
  if (append_) return;
  --completed_count_;
  edge_[0].count = 1;
  edge_[0].used = record_.leaf_bytes;
  if (record_.run_pages == 0) return;
  runs_.push_back({completed_runs_.back().page, record_.run_pages, 0});
  completed_runs_.pop_back();
}

void RecordTree::link(PageAllocator& pages, unsigned level) {
  if (level == depth_) add_root(pages);
  EdgePage& branch = edge_[level];
  if (room_ - branch.used < record_.branch_bytes) return split_branch(pages, level);
  ++branch.count;
  branch.used += record_.branch_bytes;
}

void RecordTree::add_root(PageAllocator& pages) {
  if (depth_ == kMaxDepth) {
    throw Error(ErrorKind::corrupt, "recipe: its tree would have more levels than LMDB allows",
                "make the provenance of the data set anew");
  }
  EdgePage root = new_page(pages);
  root.count = 1;
  root.used = kFirstChildBytes;
  edge_[depth_++] = root;
  ++branch_pages_;
}

void RecordTree::split_branch(PageAllocator& pages, unsigned level) {
  EdgePage sibling = new_page(pages);
  ++branch_pages_;
  link(pages, level + 1);
  sibling.count = 2;
  sibling.used = kFirstChildBytes + record_.branch_bytes;
  edge_[level] = sibling;
}

void RecordTree::place(PageAllocator& pages, std::uint32_t count) {
  EdgePage& leaf = edge_[0];
  entries_ += count;
  leaf.used += count * record_.leaf_bytes;
  if (record_.run_pages == 0) {
    leaf.count += count;
    return;
  }
  for (; count > 0; --count) {
    const PageNumber page = pages.allocate(record_.run_pages);
    runs_.push_back({page, record_.run_pages, static_cast<std::uint16_t>(leaf.count++)});
  }
}

void RecordTree::commit() {
  for (unsigned level = 0; level < depth_; ++level) edge_[level].dirty = false;
}

TreeHeader RecordTree::header() const {
  TreeHeader header;
  header.depth = static_cast<std::uint16_t>(depth_);
  header.branch_pages = branch_pages_;
  header.leaf_pages = leaf_pages_;
  header.overflow_pages = entries_ * record_.run_pages;
  header.entries = entries_;
  header.root = empty() ? kNoPage : edge_[depth_ - 1].page;
  return header;
}

void RecordTree::write(ByteWriter& out) const {
  out.varint(depth_);
  for (unsigned level = 0; level < depth_; ++level) {
    out.varint(edge_[level].page);
    out.varint(edge_[level].count);
    out.varint(edge_[level].dirty ? 1 : 0);
  }
  for (const LeafRun& run : runs_) out.varint(run.page);
  out.varint(entries_);
  out.varint(leaf_pages_);
  out.varint(branch_pages_);
}

void RecordTree::read(NumberReader& in) {
  depth_ = static_cast<unsigned>(in.get(0, kMaxDepth, "the depth"));
  for (unsigned level = 0; level < depth_; ++level) {
    EdgePage& page = edge_[level];
    const std::uint32_t first = level == 0 ? record_.leaf_bytes : kFirstChildBytes;
    const std::uint32_t each = level == 0 ? record_.leaf_bytes : record_.branch_bytes;
    page.page = in.get(kFirstTreePage, kMaxPageNumber, "a page on the edge");
    page.count = static_cast<std::uint32_t>(
        in.get(1, 1 + (room_ - first) / each, "the number of nodes of a page on the edge"));
    page.used = first + (page.count - 1) * each;
    page.dirty = in.get_flag("the state of a page on the edge");
  }
  const std::uint32_t runs = record_.run_pages == 0 || empty() ? 0 : edge_[0].count;
  for (std::uint32_t slot = 0; slot < runs; ++slot) {
    const PageNumber page = in.get(kFirstTreePage, kMaxPageNumber, "the page of a run");
    runs_.push_back({page, record_.run_pages, static_cast<std::uint16_t>(slot)});
  }
  entries_ = in.get(0, kMaxRecipeRecords, "the number of records");
  leaf_pages_ = in.get(0, kMaxPageNumber, "the number of leaves");
  branch_pages_ = in.get(0, kMaxPageNumber, "the number of branches");
}

}  // namespace forebay::lmdb
