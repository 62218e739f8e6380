#include "format/lmdb/tree_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace forebay::lmdb {

PageOwners::PageOwners(const Snapshot& snapshot)
    : owned_(std::min(snapshot.meta().last_page + 1, snapshot.file_pages())),
      last_page_(snapshot.meta().last_page) {}

std::string PageOwners::take(PageNumber first, std::uint64_t count) {
  if (first < kFirstTreePage || first > last_page_ || count > last_page_ - first + 1) {
    return fmt::format("{} pages from {} on leave the pages 2 to {}", count, first, last_page_);
  }
  // Free pages at the end of the file need not exist.
  const PageNumber end = std::min<std::uint64_t>(first + count, owned_.size());
  for (PageNumber page = first; page < end; ++page) {
    if (owned_[page]) return fmt::format("page {} is used twice", page);
  }
  for (PageNumber page = first; page < end; ++page) owned_[page] = true;
  return {};
}

std::uint64_t PageOwners::without_owner() const {
  if (owned_.size() <= kFirstTreePage) return 0;
  return static_cast<std::uint64_t>(
      std::count(owned_.begin() + kFirstTreePage, owned_.end(), false));
}

TreeCheck::TreeCheck(PageReader& pages, PageOwners& owners, FaultLog& log, std::string name,
                     const TreeHeader& header, Sink sink)
    : pages_(pages),
      owners_(owners),
      log_(log),
      name_(std::move(name)),
      header_(header),
      sink_(std::move(sink)) {}

void TreeCheck::run() {
  if (!header_.empty()) enter(header_.root);
  while (!stack_.empty()) {
    const Level level = stack_.back();
    if (level.slot == level.count) {
      stack_.pop_back();
    } else {
      ++stack_.back().slot;
      follow(level);
    }
  }
  compare_counts();
}

/// Runs `check`, turning an error of the data into a fault.
bool TreeCheck::guarded(PageNumber page, const std::string& key,
                        const std::function<void()>& check) {
  try {
    check();
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::changed) throw;
    pages_.snapshot().file().check();  // a faulted mapping cannot be trusted any further
    broken_ = true;
    log_.add(name_, page, error.happened(), key);
    return false;
  }
}

void TreeCheck::fault(PageNumber page, const std::string& text, const std::string& key) {
  broken_ = true;
  log_.add(name_, page, text, key);
}

void TreeCheck::enter(PageNumber number) {
  if (const std::string taken = owners_.take(number, 1); !taken.empty()) {
    fault(stack_.empty() ? 0 : stack_.back().page, taken);
    return;
  }
  guarded(number, {}, [&] { enter_sound(number); });
}

void TreeCheck::enter_sound(PageNumber number) {
  const Page page = pages_.tree_page(number);
  const bool leaf_level = stack_.size() + 1 == header_.depth;
  if (page.is_leaf() != leaf_level) {
    page.damaged(fmt::format("a {} page at level {} of a tree of depth {}",
                             page.is_leaf() ? "leaf" : "branch", stack_.size(), header_.depth));
  }
  page.check_nodes();
  if (page.is_leaf()) {
    ++found_.leaf_pages;
    check_leaf(number, page.count());
  } else {
    ++found_.branch_pages;
    stack_.push_back({number, 0, page.count()});
  }
}

void TreeCheck::follow(const Level& level) {
  PageNumber child = kNoPage;
  const bool sound = guarded(level.page, {}, [&] {
    const Node node = pages_.tree_page(level.page).node(level.slot);
    child = node.child;
    if (level.slot > 0) check_separator(level.page, node.key);
  });
  if (sound) enter(child);
}

/// A branch key lies above all keys before it and at or below all keys after it.
void TreeCheck::check_separator(PageNumber page, std::span<const std::byte> key) {
  if (has_previous_ && compare_keys(bytes_of(previous_), key, header_.flags) >= 0) {
    fault(page, "a branch key is not above the keys before it", printable_key(chars_of(key)));
  }
  separator_ = chars_of(key);
  has_separator_ = true;
}

void TreeCheck::check_leaf(PageNumber number, unsigned count) {
  for (unsigned slot = 0; slot < count; ++slot) {
    // Looked up again for each record: reading values may have replaced the page's bytes.
    const Page page = pages_.tree_page(number);
    const Node node = page.node(slot);
    const std::string key = printable_key(chars_of(node.key));
    check_order(number, node.key, key);
    ++found_.entries;
    guarded(number, key, [&] { check_record(page, node); });
  }
}

void TreeCheck::check_order(PageNumber page, std::span<const std::byte> key,
                            const std::string& printable) {
  if (key.empty()) fault(page, "a record has an empty key");
  if (has_previous_ && compare_keys(bytes_of(previous_), key, header_.flags) >= 0) {
    fault(page, "the key is not above the one before it", printable);
  }
  if (has_separator_ && compare_keys(bytes_of(separator_), key, header_.flags) > 0) {
    fault(page, "the key is below the branch key that leads to it", printable);
  }
  has_separator_ = false;
  has_previous_ = true;
  previous_ = chars_of(key);
}

void TreeCheck::check_record(const Page& page, const Node& node) {
  Entry entry{node.key, node.data};
  if (node.is_overflow()) {
    const PageNumber first = node.overflow_page();
    const auto run = pages_.overflow_header(first, node.value_size).run_length();
    found_.overflow_pages += run;
    if (const auto taken = owners_.take(first, run); !taken.empty()) page.damaged(taken);
    entry.value = pages_.value(first, node.value_size);
  }
  if (!node.is_tree()) sink_(entry, page.number());
}

void TreeCheck::compare_counts() {
  // After a fault the counts cannot agree, and saying so would hide the cause.
  if (broken_) return;
  const auto compare = [&](std::string_view what, std::uint64_t found, std::uint64_t counted) {
    if (found == counted) return;
    fault(header_.empty() ? 0 : header_.root,
          fmt::format("the tree has {} {} but its header counts {}", found, what, counted));
  };
  compare("entries", found_.entries, header_.entries);
  compare("branch pages", found_.branch_pages, header_.branch_pages);
  compare("leaf pages", found_.leaf_pages, header_.leaf_pages);
  compare("overflow pages", found_.overflow_pages, header_.overflow_pages);
}

}  // namespace forebay::lmdb
