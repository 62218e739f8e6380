#include "format/lmdb/provenance/survey.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "format/lmdb/leaf_page.hpp"
#include "format/lmdb/scan.hpp"

namespace forebay::lmdb {
namespace {

/// Gathers the facts leaf by leaf.
class Surveyor {
 public:
  explicit Surveyor(Database& database)
      : database_(database), table_(database.tree().header().flags) {}

  void add(PageNumber number) {
    const Page page = database_.pages().tree_page(number);
    page.check_nodes();
    const SeenLeaf leaf = look_at_leaf(page, database_.page_size(), runs_);
    add_records(page);
    table_.add(leaf);
    result_.layout.add(leaf.layout);
    result_.max_records = std::max(result_.max_records, leaf.layout.records);
  }

  std::uint64_t records() const { return records_; }

  LayoutSurvey finish(std::uint32_t max_children) {
    const TreeHeader& tree = database_.tree().header();
    if (records_ != tree.entries) {
      throw database_.pages().explain(
          tree.root,
          fmt::format("the tree has {} records but its header counts {}", records_, tree.entries));
    }
    result_.table = table_.finish();
    result_.max_children = max_children;
    return std::move(result_);
  }

 private:
  void add_records(const Page& page) {
    for (unsigned slot = 0; slot < page.count(); ++slot) {
      const Node node = page.node(slot);
      if ((node.flags & (kNodeTree | kNodeDuplicates)) != 0) refuse(page);
      widen(result_.keys, node.key.size());
      widen(result_.values, node.value_size);
      ++records_;
    }
  }

  void widen(SizeRange& range, std::uint64_t size) const {
    range.least = records_ == 0 ? size : std::min(range.least, size);
    range.most = std::max(range.most, size);
  }

  [[noreturn]] void refuse(const Page& page) const {
    throw Error(ErrorKind::unsupported, "named databases lie among the records",
                "open one as path#name",
                {.file = database_.snapshot().file().path(),
                 .offset = page.number() * database_.page_size()});
  }

  Database& database_;
  LeafTableBuilder table_;
  LayoutSurvey result_;
  std::vector<LeafRun> runs_;
  std::uint64_t records_ = 0;
};

}  // namespace

LayoutSurvey survey_layout(Database& database, const SurveyProgress& progress) {
  std::uint32_t max_children = 0;
  const auto leaves = list_leaves(database, &max_children);
  Surveyor surveyor(database);
  for (const PageNumber leaf : leaves) {
    surveyor.add(leaf);
    if (progress) progress(surveyor.records());
  }
  LayoutSurvey result = surveyor.finish(max_children);
  database.check_unchanged();
  return result;
}

}  // namespace forebay::lmdb
