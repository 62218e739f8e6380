// One page of a B+-tree, seen through checks: whatever its bytes are, no access leaves the page.
//
// The constructor checks the header (own number, type, bounds of the offset table), node() checks
// the node it is asked for, check_nodes() checks once that all nodes lie apart from each other,
// so that a damaged offset cannot deliver another record's bytes. Views live as long as the bytes.
#pragma once

#include <string>

#include "format/lmdb/layout.hpp"

namespace forebay::lmdb {

/// Who explains damage. The page does not know whether its bytes are bad, or were replaced by a
/// writer, or could not be read at all.
class DamageExplainer {
 public:
  /// The error to throw: io, changed, or corrupt naming file, page and offset.
  virtual Error explain(PageNumber page, const std::string& fault) const = 0;

 protected:
  ~DamageExplainer() = default;
};

/// A node of a leaf or a branch.
struct Node {
  std::span<const std::byte> key;
  std::uint16_t flags = 0;          ///< of leaf nodes
  std::uint64_t value_size = 0;     ///< of leaf nodes
  std::span<const std::byte> data;  ///< of leaf nodes: value, overflow page number or tree header
  PageNumber child = kNoPage;       ///< of branch nodes

  bool is_overflow() const { return (flags & kNodeOverflow) != 0; }
  bool is_tree() const { return (flags & kNodeTree) != 0; }
  /// First page of the overflow run; is_overflow() only.
  PageNumber overflow_page() const { return load<PageNumber>(data, 0); }
};

class Page {
 public:
  /// `bytes` is the whole page, `explainer` outlives this view.
  Page(std::span<const std::byte> bytes, PageNumber number, const DamageExplainer& explainer);

  PageNumber number() const { return number_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  bool is_leaf() const { return leaf_; }
  unsigned count() const { return count_; }

  Node node(unsigned slot) const;
  PageNumber child(unsigned slot) const { return node(slot).child; }
  /// Checks every node and that none overlap.
  void check_nodes() const;

  [[noreturn]] void damaged(const std::string& fault) const {
    throw explainer_->explain(number_, fault);
  }

 private:
  std::size_t node_offset(unsigned slot) const;
  std::size_t stored_size(const Node& node) const;

  std::span<const std::byte> bytes_;
  PageNumber number_;
  const DamageExplainer* explainer_;
  unsigned count_ = 0;
  unsigned upper_ = 0;
  bool leaf_ = false;
};

}  // namespace forebay::lmdb
