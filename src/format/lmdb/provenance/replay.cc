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

/// Records of a full transaction.
std::uint64_t interval(const Recipe& recipe) {
  return recipe.commit_every == 0 ? recipe.records : recipe.commit_every;
}

}  // namespace

Replay::Replay(const Recipe& recipe)
    : recipe_(validated(recipe)), pages_(recipe.page_size), tree_(recipe) {
  until_commit_ = interval(recipe_);
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
  until_commit_ = interval(recipe_);
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

void Replay::set_commit_every(std::uint64_t records) {
  Recipe changed = recipe_;
  changed.commit_every = records;
  if (put_ >= std::min(interval(recipe_), interval(changed))) {
    throw Error(ErrorKind::usage, "the replay has passed the first commit",
                "change the interval of an earlier copy");
  }
  recipe_ = validated(changed);
  until_commit_ = interval(recipe_) - put_;
}

std::vector<std::byte> Replay::checkpoint() const {
  NumberWriter out;
  out.put(kCheckpointVersion);
  out.put(put_);
  out.put(position_);
  out.put(ended_ ? 1 : 0);
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
  until_commit_ = interval(recipe_) - put_ % interval(recipe_);
}

}  // namespace forebay::lmdb
