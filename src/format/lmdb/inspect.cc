#include "format/lmdb/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "forebay/error.hpp"
#include "format/data_set.hpp"
#include "format/lmdb/provenance/sidecar.hpp"
#include "format/user_cache.hpp"

namespace forebay::lmdb {
namespace {

using Json = nlohmann::ordered_json;

/// Recognizes how the keys of a data set are made, from one pass over them.
class KeyPattern {
 public:
  void add(std::span<const std::byte> key);
  /// In words; see DatabaseReport::key_pattern.
  std::string text(bool integer_keys) const;

 private:
  std::uint64_t count_ = 0;
  std::size_t least_ = 0;
  std::size_t most_ = 0;
  bool all_digits_ = true;
  bool digits_then_name_ = true;  ///< a number, '_', and more, as Caffe writes them
  bool printable_ = true;
  std::string common_;  ///< prefix that all keys share
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void KeyPattern::add(std::span<const std::byte> key) {
  const std::string_view text = chars_of(key);
  const auto after_digits = std::find_if_not(text.begin(), text.end(), is_digit);
  all_digits_ = all_digits_ && after_digits == text.end();
  digits_then_name_ = digits_then_name_ && after_digits != text.begin() &&
                      after_digits != text.end() && *after_digits == '_';
  printable_ = printable_ && std::all_of(text.begin(), text.end(), [](char c) {
                 return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
               });
  if (count_++ == 0) {
    common_ = text;
    least_ = most_ = text.size();
    return;
  }
  least_ = std::min(least_, text.size());
  most_ = std::max(most_, text.size());
  const std::size_t both = std::min(common_.size(), text.size());
  const auto differ = std::mismatch(common_.begin(), common_.begin() + both, text.begin());
  common_.resize(static_cast<std::size_t>(differ.first - common_.begin()));
}

std::string KeyPattern::text(bool integer_keys) const {
  if (count_ == 0) return "none";
  if (integer_keys) return fmt::format("integer, {} bytes", most_);
  if (all_digits_ && least_ == most_) return fmt::format("decimal, {} digits, zero-padded", most_);
  if (all_digits_) return "decimal, not padded: key order is not numeric order";
  if (digits_then_name_) return "decimal number, '_' and a name, as Caffe writes them";
  const std::string kind = printable_ ? "text" : "bytes";
  if (count_ > 1 && common_.size() >= 2) {
    return fmt::format("{}, prefix '{}'", kind, printable_key(common_));
  }
  return fmt::format("{}, {}", kind, least_ == most_ ? "one length" : "lengths vary");
}

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
  // Duplicates may have trees of their own, which only their records tell.
  const bool duplicates = std::ranges::any_of(report.named, [](const NamedDatabase& named) {
    return (named.header.flags & kTreeDuplicates) != 0;
  });
  report.pages.unaccounted = duplicates ? 0 : all - std::min(all, in_use + pages.free);
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
    named.push_back({std::string(chars_of(node.key)), decode_tree_header(node.data)});
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

namespace {

/// Form of the sidecar beside the data, "none", or why it is not used.
std::string sidecar_state(Database& database, const std::string& path) {
  const std::string file = sidecar_path(resolve_dataset_path(path));
  if (file.empty() || !std::filesystem::exists(file)) return "none";
  const TreeFacts facts = facts_of(database);
  try {
    const auto bytes = read_small_file(file, most_sidecar_bytes(facts.entries, facts.leaf_pages));
    const auto loaded = load_sidecar(bytes, facts);
    return loaded ? loaded.leaves->form() : "not used: " + loaded.problem;
  } catch (const Error& error) {
    return "not used: " + error.happened();
  }
}

Json to_json(const SizeSummary& sizes) {
  Json histogram = Json::array();
  for (std::size_t i = 0; i < sizes.histogram.size(); ++i) {
    if (sizes.histogram[i] == 0) continue;
    const std::uint64_t from = i == 0 ? 0 : std::uint64_t{1} << (i - 1);
    const std::uint64_t to = i == 0 ? 0 : (std::uint64_t{1} << i) - 1;
    histogram.push_back({{"from", from}, {"to", to}, {"count", sizes.histogram[i]}});
  }
  return {{"min", sizes.min},
          {"mean", sizes.mean()},
          {"max", sizes.max},
          {"total", sizes.total},
          {"histogram", histogram}};
}

Json to_json(const PageSummary& pages) {
  return {{"meta", pages.meta}, {"branch", pages.branch},
          {"leaf", pages.leaf}, {"overflow", pages.overflow},
          {"free", pages.free}, {"unaccounted", pages.unaccounted}};
}

}  // namespace

std::string report_json(Database& database, const std::string& path) {
  const DatabaseReport report = inspect(database);
  Json named = Json::array();
  for (const NamedDatabase& one : report.named) {
    named.push_back({{"name", one.name}, {"entries", one.header.entries}});
  }
  Json json{{"path", path},
            {"name", report.name},
            {"entries", report.entries},
            {"keys", to_json(report.keys)},
            {"key_pattern", report.key_pattern},
            {"values", to_json(report.values)},
            {"codec", ""},
            {"schema", ""},
            {"fields", Json::array()},
            {"page_size", report.page_size},
            {"depth", report.depth},
            {"transaction", report.txn_id},
            {"pages", to_json(report.pages)},
            {"used_bytes", report.used_bytes},
            {"file_bytes", report.file_bytes},
            {"records_per_leaf", report.records_per_leaf},
            {"read_amplification", report.read_amplification},
            {"named_databases", named},
            {"sidecar", sidecar_state(database, path)},
            {"samples", 0},
            {"convention", nullptr}};
  if (!report.damaged_meta.empty()) json["damaged_meta"] = report.damaged_meta;
  return json_line(json);
}

FreePages decode_free_pages(const Entry& entry, const DamageExplainer& explainer, PageNumber leaf) {
  constexpr std::size_t kNumber = sizeof(std::uint64_t);
  if (entry.key.size() != kNumber || entry.value.size() < kNumber) {
    throw explainer.explain(
        leaf, fmt::format("a record of the free list has a key of {} and a value of {} bytes",
                          entry.key.size(), entry.value.size()));
  }
  const auto count = load<std::uint64_t>(entry.value, 0);
  if (count > entry.value.size() / kNumber - 1) {
    throw explainer.explain(
        leaf, fmt::format("a record of the free list counts {} pages in {} bytes", count,
                          entry.value.size()));
  }
  return {load<std::uint64_t>(entry.key, 0), entry.value.subspan(kNumber, count * kNumber)};
}

void visit_free_list(PageReader& pages, const std::function<void(const FreePages&)>& visit) {
  Tree tree(pages, pages.snapshot().meta().free_tree);
  Cursor cursor = tree.first();
  for (bool more = cursor.valid(); more; more = tree.next(cursor)) {
    visit(decode_free_pages(tree.entry(cursor), pages, cursor.leaf().page));
  }
}

}  // namespace forebay::lmdb
