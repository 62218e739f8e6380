#include "format/lmdb/verify.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "format/lmdb/free_list.hpp"
#include "format/lmdb/inspect.hpp"

namespace forebay::lmdb {
namespace {

std::string to_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> to_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// Faults of one run, kept up to a limit.
class FaultLog {
 public:
  FaultLog(VerifyReport& report, std::size_t limit, std::uint32_t page_size)
      : report_(report), limit_(limit), page_size_(page_size) {}

  void add(const std::string& database, PageNumber page, std::string text, std::string key = {}) {
    ++report_.fault_count;
    if (report_.faults.size() >= limit_) return;
    report_.faults.push_back({database, page, page * page_size_, std::move(key), std::move(text)});
  }

 private:
  VerifyReport& report_;
  std::size_t limit_;
  std::uint32_t page_size_;
};

/// Which pages have an owner already.
class PageOwners {
 public:
  explicit PageOwners(const Snapshot& snapshot)
      : owned_(std::min(snapshot.meta().last_page + 1, snapshot.file_pages())),
        last_page_(snapshot.meta().last_page) {}

  /// Takes `count` pages from `first` on. Returns why that is not possible; empty when it was.
  std::string take(PageNumber first, std::uint64_t count) {
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

  std::uint64_t without_owner() const {
    if (owned_.size() <= kFirstTreePage) return 0;
    return static_cast<std::uint64_t>(
        std::count(owned_.begin() + kFirstTreePage, owned_.end(), false));
  }

 private:
  std::vector<bool> owned_;
  PageNumber last_page_;
};

/// Walks one tree depth-first with a stack of (page, next slot).
class TreeCheck {
 public:
  /// Receives each sound record and the page of its leaf.
  using Sink = std::function<void(const Entry&, PageNumber)>;

  TreeCheck(PageReader& pages, PageOwners& owners, FaultLog& log, std::string name,
            const TreeHeader& header, Sink sink)
      : pages_(pages),
        owners_(owners),
        log_(log),
        name_(std::move(name)),
        header_(header),
        sink_(std::move(sink)) {}

  void run() {
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

  std::uint64_t pages_seen() const { return found_.pages(); }

 private:
  struct Level {
    PageNumber page;
    unsigned slot;
    unsigned count;
  };

  /// Runs `check`, turning an error of the data into a fault.
  template <typename Check>
  bool guarded(PageNumber page, const std::string& key, const Check& check) {
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

  void fault(PageNumber page, const std::string& text, const std::string& key = {}) {
    broken_ = true;
    log_.add(name_, page, text, key);
  }

  void enter(PageNumber number) {
    if (const std::string taken = owners_.take(number, 1); !taken.empty()) {
      fault(stack_.empty() ? 0 : stack_.back().page, taken);
      return;
    }
    guarded(number, {}, [&] {
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
    });
  }

  void follow(const Level& level) {
    PageNumber child = kNoPage;
    const bool sound = guarded(level.page, {}, [&] {
      const Node node = pages_.tree_page(level.page).node(level.slot);
      child = node.child;
      if (level.slot > 0) check_separator(level.page, node.key);
    });
    if (sound) enter(child);
  }

  /// A branch key lies above all keys before it and at or below all keys after it.
  void check_separator(PageNumber page, std::span<const std::byte> key) {
    if (has_previous_ && compare_keys(to_bytes(previous_), key, header_.flags) >= 0) {
      fault(page, "a branch key is not above the keys before it", printable_key(to_text(key)));
    }
    separator_ = to_text(key);
    has_separator_ = true;
  }

  void check_leaf(PageNumber number, unsigned count) {
    for (unsigned slot = 0; slot < count; ++slot) {
      // Looked up again for each record: reading values may have replaced the page's bytes.
      const Page page = pages_.tree_page(number);
      const Node node = page.node(slot);
      const std::string key = printable_key(to_text(node.key));
      check_order(number, node.key, key);
      ++found_.entries;
      guarded(number, key, [&] { check_record(page, node); });
    }
  }

  void check_order(PageNumber page, std::span<const std::byte> key, const std::string& printable) {
    if (key.empty()) fault(page, "a record has an empty key");
    if (has_previous_ && compare_keys(to_bytes(previous_), key, header_.flags) >= 0) {
      fault(page, "the key is not above the one before it", printable);
    }
    if (has_separator_ && compare_keys(to_bytes(separator_), key, header_.flags) > 0) {
      fault(page, "the key is below the branch key that leads to it", printable);
    }
    has_separator_ = false;
    has_previous_ = true;
    previous_ = to_text(key);
  }

  void check_record(const Page& page, const Node& node) {
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

  void compare_counts() {
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

  PageReader& pages_;
  PageOwners& owners_;
  FaultLog& log_;
  std::string name_;
  TreeHeader header_;
  Sink sink_;
  std::vector<Level> stack_;
  TreeHeader found_;  ///< counts as walked
  bool broken_ = false;
  bool has_previous_ = false;
  bool has_separator_ = false;
  std::string previous_;
  std::string separator_;
};

/// One run over all trees of a file.
class Verifier {
 public:
  Verifier(Database& database, const VerifyOptions& options, const RecordVisitor& visitor)
      : database_(database),
        pages_(database.pages()),
        visitor_(visitor),
        owners_(database.snapshot()),
        log_(report_, options.max_faults, database.page_size()) {}

  VerifyReport run() {
    const Snapshot& snapshot = database_.snapshot();
    if (!snapshot.damaged_meta().empty()) log_.add("meta", 0, snapshot.damaged_meta());
    check_tree("main", snapshot.meta().main_tree, database_.name().empty());
    check_named();
    check_free_list();
    report_.unreferenced_pages = owners_.without_owner();
    database_.check_unchanged();
    return std::move(report_);
  }

 private:
  void check_tree(const std::string& name, const TreeHeader& header, bool is_data_set) {
    TreeCheck check(pages_, owners_, log_, name, header, [&](const Entry& entry, PageNumber) {
      if (is_data_set) deliver(entry);
    });
    check.run();
    report_.pages += check.pages_seen();
  }

  void deliver(const Entry& entry) {
    const Record record{.sample = report_.records++, .key = entry.key, .value = entry.value};
    if (visitor_) visitor_(record);
    database_.snapshot().file().check();
  }

  void check_named() {
    std::vector<NamedDatabase> named;
    try {
      named = list_named(pages_);
    } catch (const Error& error) {
      // The walk over the main tree has reported it; of named ones only the open one is left.
      if (error.kind() != ErrorKind::corrupt) throw;
      if (!database_.name().empty()) named = {{database_.name(), database_.tree().header()}};
    }
    for (const NamedDatabase& one : named) {
      const std::string name = "#" + printable_key(one.name);
      const Snapshot& snapshot = database_.snapshot();
      const std::string fault = impossible(one.header, snapshot.meta().last_page,
                                           snapshot.file_pages(), snapshot.page_size());
      if (!fault.empty()) {
        log_.add(name, snapshot.meta().main_tree.root, fault);
      } else if ((one.header.flags & kTreeDuplicates) != 0) {
        log_.add(name, one.header.root, "several values a key (MDB_DUPSORT): not looked into");
      } else {
        check_tree(name, one.header, one.name == database_.name());
      }
    }
  }

  void check_free_list() {
    const auto sink = [&](const Entry& entry, PageNumber leaf) {
      const FreePages free = decode_free_pages(entry, pages_, leaf);
      report_.free_pages += free.count();
      for (std::uint64_t i = 0; i < free.count(); ++i) {
        const std::string taken = owners_.take(free[i], 1);
        if (!taken.empty()) log_.add("free list", leaf, "a free page: " + taken);
      }
    };
    TreeCheck check(pages_, owners_, log_, "free list", database_.snapshot().meta().free_tree,
                    sink);
    check.run();
    report_.pages += check.pages_seen();
  }

  Database& database_;
  PageReader& pages_;
  const RecordVisitor& visitor_;
  VerifyReport report_;
  PageOwners owners_;
  FaultLog log_;
};

}  // namespace

VerifyReport verify(Database& database, const VerifyOptions& options,
                    const RecordVisitor& visitor) {
  return Verifier(database, options, visitor).run();
}

}  // namespace forebay::lmdb
