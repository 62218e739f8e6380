#include "format/lmdb/provenance/survey.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "format/lmdb/provenance/leaf_table.hpp"
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

}  // namespace forebay::lmdb
