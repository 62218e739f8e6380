// The parts of verify: one tree walked depth-first, the pages that have an owner, the faults found.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "format/lmdb/page_reader.hpp"
#include "format/lmdb/tree.hpp"
#include "format/lmdb/verify.hpp"

namespace forebay::lmdb {

/// Faults of one run, kept up to a limit.
class FaultLog {
 public:
  FaultLog(PagesReport& report, std::size_t limit, std::uint32_t page_size)
      : report_(report), limit_(limit), page_size_(page_size) {}

  void add(const std::string& database, PageNumber page, std::string text, std::string key = {}) {
    ++report_.fault_count;
    if (report_.faults.size() >= limit_) return;
    report_.faults.push_back({database, page, page * page_size_, std::move(key), std::move(text)});
  }

 private:
  PagesReport& report_;
  std::size_t limit_;
  std::uint32_t page_size_;
};

/// Which pages have an owner already.
class PageOwners {
 public:
  explicit PageOwners(const Snapshot& snapshot);

  /// Takes `count` pages from `first` on. Returns why that is not possible; empty when it was.
  std::string take(PageNumber first, std::uint64_t count);
  /// Pages that nobody took.
  std::uint64_t without_owner() const;

 private:
  std::vector<bool> owned_;
  PageNumber last_page_;
};

/// Walks one tree with a stack of (page, next slot). Each page is entered once at most, since it
/// has to be taken from the owners first: that ends loops of any kind.
class TreeCheck {
 public:
  /// Receives each sound record and the page of its leaf. An Error that it throws is a fault.
  using Sink = std::function<void(const Entry&, PageNumber)>;

  /// `name` is how faults call the tree. All references outlive this object.
  TreeCheck(PageReader& pages, PageOwners& owners, FaultLog& log, std::string name,
            const TreeHeader& header, Sink sink);

  /// Throws only changed, and io of a mapping.
  void run();
  std::uint64_t pages_seen() const { return found_.pages(); }

 private:
  struct Level {
    PageNumber page;
    unsigned slot;
    unsigned count;
  };

  bool guarded(PageNumber page, const std::string& key, const std::function<void()>& check);
  void fault(PageNumber page, const std::string& text, const std::string& key = {});
  void enter(PageNumber number);
  void enter_sound(PageNumber number);
  void follow(const Level& level);
  void check_separator(PageNumber page, std::span<const std::byte> key);
  void check_leaf(PageNumber number, unsigned count);
  void check_order(PageNumber page, std::span<const std::byte> key, const std::string& printable);
  void check_record(const Page& page, const Node& node);
  void compare_counts();

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

}  // namespace forebay::lmdb
