#include "format/lmdb/tree.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace forebay::lmdb {

Page Tree::page_at(const Cursor& cursor, unsigned level) {
  const Cursor::Step& step = cursor.path[level];
  const Page page = pages_->tree_page(step.page);
  const bool leaf_level = level + 1 == header_.depth;
  if (page.is_leaf() != leaf_level) {
    page.damaged(fmt::format("a {} page at level {} of a tree of depth {}",
                             page.is_leaf() ? "leaf" : "branch", level, header_.depth));
  }
  if (step.slot >= page.count()) {
    page.damaged(fmt::format("slot {} is not among its {} nodes", step.slot, page.count()));
  }
  return page;
}

Page Tree::leaf_page(const Cursor& cursor) {
  if (!cursor.valid() || cursor.depth != header_.depth) {
    throw Error(ErrorKind::usage, "the cursor is on no record of this tree",
                "move it with first, seek or seek_record",
                {.file = pages_->snapshot().file().path()});
  }
  return page_at(cursor, cursor.depth - 1);
}

void Tree::descend(Cursor& cursor, unsigned level, unsigned end, bool to_last) {
  for (; level < end; ++level) {
    Cursor::Step& step = cursor.path[level];
    step.slot = 0;
    const Page page = page_at(cursor, level);
    if (to_last) step.slot = page.count() - 1;
    if (level + 1 < header_.depth) {
      cursor.path[level + 1].page = page.child(static_cast<unsigned>(step.slot));
    }
  }
  cursor.depth = header_.depth;
}

Cursor Tree::first() {
  Cursor cursor;
  if (header_.empty()) return cursor;
  cursor.path[0].page = header_.root;
  descend(cursor, 0, header_.depth, false);
  cursor.sample = 0;
  return cursor;
}

Cursor Tree::last() {
  Cursor cursor;
  if (header_.empty()) return cursor;
  cursor.path[0].page = header_.root;
  descend(cursor, 0, header_.depth, true);
  cursor.sample = header_.entries - 1;
  return cursor;
}

Cursor Tree::about(std::uint64_t part, std::uint64_t of) {
  Cursor cursor;
  if (header_.empty()) return cursor;
  cursor.path[0].page = header_.root;
  const auto slots = page_at(cursor, 0).count();
  cursor.path[0].slot = part * (slots - 1) / of;
  if (header_.depth > 1) {
    cursor.path[1].page = page_at(cursor, 0).child(static_cast<unsigned>(cursor.path[0].slot));
  }
  descend(cursor, 1, header_.depth, part == of);
  cursor.depth = header_.depth;
  return cursor;
}

bool Tree::next_page(Cursor& cursor, unsigned level) {
  for (unsigned above = level; above-- > 0;) {
    const Page page = page_at(cursor, above);
    Cursor::Step& step = cursor.path[above];
    if (step.slot + 1 >= page.count()) continue;
    ++step.slot;
    cursor.path[above + 1].page = page.child(static_cast<unsigned>(step.slot));
    descend(cursor, above + 1, level + 1, false);
    return true;
  }
  return false;
}

bool Tree::previous_leaf(Cursor& cursor) {
  for (unsigned level = header_.depth - 1; level-- > 0;) {
    const Page page = page_at(cursor, level);
    Cursor::Step& step = cursor.path[level];
    if (step.slot == 0) continue;
    --step.slot;
    cursor.path[level + 1].page = page.child(static_cast<unsigned>(step.slot));
    descend(cursor, level + 1, header_.depth, true);
    return true;
  }
  return false;
}

std::uint64_t Tree::skip_leaves(Cursor& cursor, std::uint64_t count) {
  cursor.sample = kUnknownSample;
  cursor.leaf().slot = 0;
  if (header_.depth == 1) return 0;
  const unsigned above = header_.depth - 2;
  std::uint64_t skipped = 0;
  while (skipped < count) {
    const Page page = page_at(cursor, above);
    Cursor::Step& step = cursor.path[above];
    const std::uint64_t here = std::min(count - skipped, page.count() - 1 - step.slot);
    if (here > 0) {
      step.slot += here;
      cursor.leaf().page = page.child(static_cast<unsigned>(step.slot));
      skipped += here;
    } else if (next_page(cursor, above)) {
      ++skipped;
    } else {
      break;
    }
  }
  return skipped;
}

std::uint64_t Tree::leaves_between(Cursor from, const Cursor& to) {
  if (header_.depth == 1) return 0;
  const unsigned above = header_.depth - 2;
  Cursor::Step& step = from.path[above];
  std::uint64_t leaves = 0;
  // A leaf holds a record at least: more of them than records are a loop.
  while (step.page != to.path[above].page && leaves < header_.entries) {
    leaves += page_at(from, above).count() - step.slot;
    if (!next_page(from, above)) break;
  }
  return leaves + to.path[above].slot - step.slot;
}

void Tree::count_move(Cursor& cursor, bool ahead) {
  const bool known = cursor.sample != kUnknownSample;
  if (known) cursor.sample = ahead ? cursor.sample + 1 : cursor.sample - 1;
  if (!known) ++cursor.moved;
  // Going back before record 0 wraps to a number that is too large as well.
  if ((known ? cursor.sample : cursor.moved) >= header_.entries) {
    pages_->damaged(cursor.leaf().page,
                    fmt::format("the tree has more records than the {} that its header counts",
                                header_.entries));
  }
}

bool Tree::next(Cursor& cursor) {
  const Page leaf = leaf_page(cursor);
  if (cursor.leaf().slot + 1 < leaf.count()) {
    ++cursor.leaf().slot;
  } else if (!next_leaf(cursor)) {
    if (cursor.sample != kUnknownSample) check_is_last(cursor);
    cursor = {};
    return false;
  }
  count_move(cursor, true);
  return true;
}

bool Tree::previous(Cursor& cursor) {
  leaf_page(cursor);
  if (cursor.leaf().slot > 0) {
    --cursor.leaf().slot;
  } else if (!previous_leaf(cursor)) {
    if (cursor.sample != kUnknownSample && cursor.sample != 0) {
      pages_->damaged(
          cursor.leaf().page,
          fmt::format("the tree has {} records fewer than its header counts", cursor.sample));
    }
    cursor = {};
    return false;
  }
  count_move(cursor, false);
  return true;
}

void Tree::check_is_last(const Cursor& cursor) {
  const Page leaf = leaf_page(cursor);
  bool last = cursor.leaf().slot + 1 == leaf.count();
  for (unsigned level = 0; last && level + 1 < header_.depth; ++level) {
    last = cursor.path[level].slot + 1 == page_at(cursor, level).count();
  }
  if (last && cursor.sample + 1 == header_.entries) {
    end_known_ = true;
    return;
  }
  leaf.damaged(fmt::format("the tree {} at record {} but its header counts {}",
                           last ? "ends" : "goes on", cursor.sample + 1, header_.entries));
}

unsigned Tree::lower_bound(const Page& page, std::span<const std::byte> key, unsigned from) const {
  unsigned to = page.count();
  while (from < to) {
    const unsigned middle = from + (to - from) / 2;
    if (compare_keys(page.node(middle).key, key, header_.flags) < 0) {
      from = middle + 1;
    } else {
      to = middle;
    }
  }
  return from;
}

Cursor Tree::seek(std::span<const std::byte> key) {
  Cursor cursor;
  if (header_.empty()) return cursor;
  cursor.depth = header_.depth;
  cursor.path[0].page = header_.root;
  for (unsigned level = 0; level + 1 < header_.depth; ++level) {
    Cursor::Step& step = cursor.path[level];
    const Page page = page_at(cursor, level);
    // The child to follow is the last one whose key is not greater; slot 0 has no key.
    unsigned slot = lower_bound(page, key, 1);
    const bool exact =
        slot < page.count() && compare_keys(page.node(slot).key, key, header_.flags) == 0;
    if (!exact) --slot;
    step.slot = slot;
    cursor.path[level + 1].page = page.child(slot);
  }
  const Page leaf = page_at(cursor, header_.depth - 1U);
  const unsigned slot = lower_bound(leaf, key, 0);
  cursor.leaf().slot = slot;
  if (slot < leaf.count()) return cursor;
  cursor.leaf().slot = leaf.count() - 1;
  if (!next_leaf(cursor)) return {};
  return cursor;
}

void Tree::forward(Cursor& cursor, std::uint64_t count) {
  while (count > 0) {
    const std::uint64_t rest = leaf_page(cursor).count() - 1 - cursor.leaf().slot;
    const std::uint64_t step = count <= rest ? count : rest;
    cursor.leaf().slot += step;
    cursor.sample += step;
    count -= step;
    if (count == 0) return;
    if (!next_leaf(cursor)) check_is_last(cursor);
    ++cursor.sample;
    --count;
  }
}

void Tree::backward(Cursor& cursor, std::uint64_t count) {
  while (count > 0) {
    leaf_page(cursor);
    const std::uint64_t rest = cursor.leaf().slot;
    const std::uint64_t step = count <= rest ? count : rest;
    cursor.leaf().slot -= step;
    cursor.sample -= step;
    count -= step;
    if (count == 0) return;
    if (!previous_leaf(cursor)) {
      pages_->damaged(cursor.leaf().page,
                      fmt::format("the tree has {} records fewer than its header counts", count));
    }
    --cursor.sample;
    --count;
  }
}

std::uint64_t Tree::seek_record(Cursor& cursor, std::uint64_t sample) {
  if (sample >= header_.entries) {
    throw Error(ErrorKind::usage,
                fmt::format("record {} is not among the {} records", sample, header_.entries), {},
                {.file = pages_->snapshot().file().path()});
  }
  const std::uint64_t from_end = end_known_ ? header_.entries - 1 - sample : sample;
  const bool known = cursor.valid() && cursor.sample < header_.entries;
  const std::uint64_t from_here = !known                    ? header_.entries
                                  : sample >= cursor.sample ? sample - cursor.sample
                                                            : cursor.sample - sample;
  if (from_here > std::min(sample, from_end)) cursor = sample <= from_end ? first() : last();
  const bool ahead = sample >= cursor.sample;
  const std::uint64_t distance = ahead ? sample - cursor.sample : cursor.sample - sample;
  if (ahead) {
    forward(cursor, distance);
  } else {
    backward(cursor, distance);
  }
  return distance;
}

Node Tree::node(const Cursor& cursor) {
  const Page leaf = leaf_page(cursor);
  if (checked_leaf_ != leaf.number()) {
    leaf.check_nodes();
    checked_leaf_ = leaf.number();
  }
  return leaf.node(static_cast<unsigned>(cursor.leaf().slot));
}

Entry Tree::entry(const Cursor& cursor) {
  const Node node = this->node(cursor);
  if ((node.flags & (kNodeTree | kNodeDuplicates)) != 0) {
    throw Error(ErrorKind::unsupported,
                "the record is a named database (or a set of duplicates) among plain records",
                "open it as path#name, or name it in --leave-out",
                {.file = pages_->snapshot().file().path(),
                 .offset = cursor.leaf().page * pages_->page_size(),
                 .sample = {},
                 .key = printable_key(chars_of(node.key))});
  }
  if (!node.is_overflow()) return {node.key, node.data};
  return {node.key, pages_->value(node.overflow_page(), node.value_size)};
}

}  // namespace forebay::lmdb
