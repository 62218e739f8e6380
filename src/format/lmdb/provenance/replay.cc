#include "format/lmdb/provenance/replay.hpp"

#include <algorithm>

#include "forebay/error.hpp"

namespace forebay::lmdb {
namespace {

constexpr std::uint64_t kCheckpointVersion = 1;

Recipe validated(const Recipe& recipe) {
  validate(recipe);
  return recipe;
}

std::uint64_t interval(const Recipe& recipe) {
  return recipe.commit_every == 0 ? recipe.records : recipe.commit_every;
}

std::uint64_t first_commit(const Recipe& recipe) {
  return recipe.first_commit == 0 ? interval(recipe) : recipe.first_commit;
}

/// Records from `put` to the next commit.
std::uint64_t until_commit(const Recipe& recipe, std::uint64_t put) {
  const std::uint64_t first = first_commit(recipe);
  return put < first ? first - put : interval(recipe) - (put - first) % interval(recipe);
}

/// Whether both made the same commits while the first `put` records were put.
bool commit_alike(const Recipe& a, const Recipe& b, std::uint64_t put) {
  const std::uint64_t first = std::min(first_commit(a), first_commit(b));
  if (put < first) return true;
  return first_commit(a) == first_commit(b) && put - first < std::min(interval(a), interval(b));
}

}  // namespace

Replay::Replay(const Recipe& recipe)
    : recipe_(validated(recipe)), pages_(recipe.page_size), tree_(recipe) {
  until_commit_ = until_commit(recipe_, 0);
  pages_.begin();
  if (!recipe_.name.empty()) name_.create(pages_);
  if (!recipe_.created_apart) return;
  name_.before_commit(pages_);
  pages_.commit();
  pages_.begin();
}

void Replay::put_some() {
  name_.before_put(pages_, tree_.empty());
  const std::uint64_t count = tree_.put(pages_, std::min(until_commit_, recipe_.records - put_));
  put_ += count;
  until_commit_ -= count;
  if (until_commit_ == 0 || put_ == recipe_.records) commit();
}

void Replay::commit() {
  name_.before_commit(pages_);
  pages_.commit();
  tree_.commit();
  until_commit_ = until_commit(recipe_, put_);
  if (put_ < recipe_.records) pages_.begin();
}

bool Replay::next(LeafLayout& leaf) {
  while (put_ < recipe_.records) {
    put_some();
    if (!tree_.has_completed()) continue;
    leaf = tree_.completed();
    position_ += leaf.records;
    return true;
  }
  if (ended_) return false;
  ended_ = true;
  leaf = tree_.last_leaf();
  position_ += leaf.records;
  return true;
}

ReplayTotals Replay::totals() const {
  if (!ended_) {
    throw Error(ErrorKind::usage, "the replay has not come to its end",
                "call next() until it returns false");
  }
  ReplayTotals totals;
  totals.last_page = pages_.last_page();
  totals.transaction = pages_.transaction();
  totals.data = tree_.header();
  totals.main = totals.data;
  totals.free = pages_.free_tree();
  if (!name_.exists()) return totals;
  totals.main = {};
  totals.main.depth = 1;
  totals.main.leaf_pages = 1;
  totals.main.entries = 1;
  totals.main.root = name_.leaf();
  return totals;
}

void Replay::set_commits(std::uint64_t first_commit, std::uint64_t commit_every) {
  Recipe changed = recipe_;
  changed.first_commit = first_commit;
  changed.commit_every = commit_every;
  validate(changed);
  if (!commit_alike(recipe_, changed, put_)) {
    throw Error(ErrorKind::usage, "the replay has made other commits than these",
                "change those of an earlier copy");
  }
  recipe_ = changed;
  until_commit_ = until_commit(recipe_, put_);
}

std::vector<std::byte> Replay::checkpoint() const {
  ByteWriter out;
  out.varint(kCheckpointVersion);
  out.varint(put_);
  out.varint(position_);
  out.varint(ended_ ? 1 : 0);
  pages_.write(out);
  name_.write(out);
  tree_.write(out);
  std::vector<std::byte> bytes = out.take();
  if (bytes.size() > kMaxCheckpointBytes) {
    throw Error(ErrorKind::corrupt, "checkpoint: it would be larger than any of a real database",
                "make the provenance of the data set anew");
  }
  return bytes;
}

Replay::Replay(const Recipe& recipe, std::span<const std::byte> checkpoint)
    : recipe_(validated(recipe)), pages_(recipe.page_size), tree_(recipe) {
  NumberReader in(checkpoint.first(std::min(checkpoint.size(), kMaxCheckpointBytes)), "checkpoint");
  in.get(kCheckpointVersion, kCheckpointVersion, "the version");
  put_ = in.get(0, recipe_.records, "the number of records put");
  position_ = in.get(0, put_, "the number of records given out");
  ended_ = in.get_flag("its end");
  pages_ = PageAllocator::read(in, recipe_.page_size);
  name_ = NameRecord::read(in);
  tree_.read(in);
  in.end();
  const bool started = tree_.empty() == (put_ == 0) && name_.exists() == !recipe_.name.empty();
  if (!started || tree_.header().entries != put_ || (ended_ && put_ != recipe_.records)) {
    throw Error(ErrorKind::corrupt, "checkpoint: it is not one of this recipe",
                "make the provenance of the data set anew");
  }
  until_commit_ = until_commit(recipe_, put_);
}

void NameRecord::create(PageAllocator& pages) {
  leaf_ = pages.allocate(1);
  dirty_ = true;
  tree_changed_ = true;
}

void NameRecord::touch(PageAllocator& pages) {
  if (dirty_) return;
  const PageNumber copy = pages.allocate(1);
  pages.release(leaf_);
  leaf_ = copy;
  dirty_ = true;
}

void NameRecord::before_put(PageAllocator& pages, bool tree_is_empty) {
  if (!exists() || tree_changed_) return;
  if (!tree_is_empty) touch(pages);
  tree_changed_ = true;
}

void NameRecord::before_commit(PageAllocator& pages) {
  if (!exists()) return;
  if (tree_changed_) touch(pages);
  dirty_ = false;
  tree_changed_ = false;
}

void NameRecord::write(ByteWriter& out) const {
  out.varint(leaf_ + 1);  // kNoPage becomes 0
  out.varint(dirty_ ? 1 : 0);
  out.varint(tree_changed_ ? 1 : 0);
}

NameRecord NameRecord::read(NumberReader& in) {
  NameRecord record;
  record.leaf_ = in.get(0, kMaxPageNumber, "the page of the name") - 1;
  record.dirty_ = in.get_flag("the state of the name's page");
  record.tree_changed_ = in.get_flag("the state of the named tree");
  return record;
}

}  // namespace forebay::lmdb
