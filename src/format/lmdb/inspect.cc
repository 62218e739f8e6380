#include "format/lmdb/inspect.hpp"

#include <algorithm>
#include <bit>

#include "format/lmdb/free_list.hpp"
#include "format/lmdb/key_pattern.hpp"

namespace forebay::lmdb {
namespace {

void walk_records(Database& database, DatabaseReport& report) {
  KeyPattern pattern;
  Tree& tree = database.tree();
  Cursor cursor = tree.first();
  for (bool more = cursor.valid(); more; more = tree.next(cursor)) {
    const Node node = tree.node(cursor);
    if (node.is_tree()) continue;
    report.keys.add(node.key.size());
    report.values.add(node.value_size);
    pattern.add(node.key);
  }
  report.entries = report.values.count;
  report.key_pattern = pattern.text(report.integer_keys);
}

void count_pages(Database& database, DatabaseReport& report) {
  const Meta& meta = database.snapshot().meta();
  report.pages.add(meta.main_tree);
  report.pages.add(meta.free_tree);
  for (const NamedDatabase& named : report.named) report.pages.add(named.header);
  visit_free_list(database.pages(),
                  [&](const FreePages& free) { report.pages.free += free.count(); });
  const PageSummary& pages = report.pages;
  const std::uint64_t in_use = pages.meta + pages.branch + pages.leaf + pages.overflow;
  const std::uint64_t all = meta.last_page + 1;
  report.pages.unaccounted = all - std::min(all, in_use + pages.free);
  report.used_bytes = in_use * report.page_size;
  report.file_bytes = database.snapshot().file().size();
}

void derive_costs(DatabaseReport& report) {
  const TreeHeader& tree = report.tree;
  if (tree.leaf_pages == 0) return;
  report.records_per_leaf =
      static_cast<double>(tree.entries) / static_cast<double>(tree.leaf_pages);
  if (report.values.total == 0) return;
  const std::uint64_t fetched = (tree.leaf_pages + tree.overflow_pages) * report.page_size;
  report.read_amplification =
      static_cast<double>(fetched) / static_cast<double>(report.values.total);
}

}  // namespace

void SizeSummary::add(std::uint64_t size) {
  min = count == 0 ? size : std::min(min, size);
  max = std::max(max, size);
  total += size;
  ++count;
  ++histogram[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(size)),
                                    histogram.size() - 1)];
}

void PageSummary::add(const TreeHeader& tree) {
  branch += tree.branch_pages;
  leaf += tree.leaf_pages;
  overflow += tree.overflow_pages;
}

std::vector<NamedDatabase> list_named(PageReader& pages) {
  std::vector<NamedDatabase> named;
  Tree main(pages, pages.snapshot().meta().main_tree);
  Cursor cursor = main.first();
  for (bool more = cursor.valid(); more; more = main.next(cursor)) {
    const Node node = main.node(cursor);
    if (!node.is_tree() || (node.flags & kNodeDuplicates) != 0) continue;
    named.push_back({{reinterpret_cast<const char*>(node.key.data()), node.key.size()},
                     decode_tree_header(node.data)});
  }
  return named;
}

DatabaseReport inspect(Database& database) {
  DatabaseReport report;
  report.path = database.path();
  report.name = database.name();
  report.txn_id = database.txn_id();
  report.page_size = database.page_size();
  report.depth = database.depth();
  report.last_page = database.last_page();
  report.tree = database.tree().header();
  report.integer_keys = (report.tree.flags & kTreeIntegerKey) != 0;
  report.holds_slot = database.holds_slot();
  report.damaged_meta = database.snapshot().damaged_meta();
  walk_records(database, report);
  report.named = list_named(database.pages());
  count_pages(database, report);
  derive_costs(report);
  database.check_unchanged();
  return report;
}

DatabaseReport inspect(const std::string& path, Engine engine) {
  Database database = Database::open_container(path, engine);
  return inspect(database);
}

}  // namespace forebay::lmdb
