#include "format/lmdb/database.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/log.hpp"
#include "format/dataset_files.hpp"
#include "format/lmdb/inspect.hpp"
#include "format/lmdb/reader_slot.hpp"
#include "format/user_cache.hpp"

namespace forebay::lmdb {
namespace {

constexpr int kAttempts = 20;
constexpr std::size_t kNamesInMessage = 20;
constexpr std::size_t kMostShownBytes = 2048;  // in hexadecimal; LMDB's keys have 511
// A deeper main tree is hardly one of named databases, and whoever reads one of these is told then.
constexpr unsigned kDeepestContainer = 2;

void refuse_duplicates(const TreeHeader& header, const std::string& file) {
  if ((header.flags & kTreeDuplicates) == 0) return;
  throw Error(ErrorKind::unsupported,
              "the database holds several values a key (MDB_DUPSORT), so it has no sample order",
              "write it anew with one value a key", {.file = file});
}

/// Names of trees in the main tree; stops at the first plain record when `only_leading`.
std::vector<std::string> list_names(Tree& main, bool only_leading) {
  std::vector<std::string> names;
  Cursor cursor = main.first();
  for (bool more = cursor.valid(); more; more = main.next(cursor)) {
    const Node node = main.node(cursor);
    if (node.is_tree()) {
      names.emplace_back(chars_of(node.key));
    } else if (only_leading) {
      return {};
    }
  }
  return names;
}

std::string joined(std::vector<std::string> names) {
  const std::size_t all = names.size();
  names.resize(std::min(all, kNamesInMessage));
  for (std::string& name : names) name = shown_name(name);
  return fmt::format("{}{}", fmt::join(names, ", "), all > kNamesInMessage ? ", ..." : "");
}

void refuse_container(Tree& main, const std::string& file) {
  // A main database that starts with a plain record is a data set; this keeps open cheap, and so
  // does leaving a large tree alone: where a sidecar is, opening reads no page of it.
  if (main.header().depth > kDeepestContainer) return;
  const auto names = list_names(main, true);
  if (names.empty()) return;
  throw Error(ErrorKind::usage,
              fmt::format("the main database only holds named ones: {}", joined(names)),
              fmt::format("choose one by path#name, for example #{}", shown_name(names.front())),
              {.file = file});
}

bool has_name(Tree& main, const std::string& name) {
  const auto key = std::as_bytes(std::span(name));
  const Cursor cursor = main.seek(key);
  return cursor.valid() && compare_keys(main.node(cursor).key, key, 0) == 0;
}

/// The database's own name, also where `name` is what messages show of it: 0x782079.
std::string stored_name(Tree& main, const std::string& name) {
  if (!name.starts_with("0x") || has_name(main, name)) return name;
  const auto names = list_names(main, false);
  const auto shown = std::ranges::find_if(
      names, [&](const std::string& one) { return printable_key(one, kMostShownBytes) == name; });
  return shown == names.end() ? name : *shown;
}

TreeHeader find_named(Tree& main, const Snapshot& snapshot, const std::string& name) {
  const std::string& file = snapshot.file().path();
  const auto key = std::as_bytes(std::span(name));
  const Cursor cursor = main.seek(key);
  const bool found = cursor.valid() && compare_keys(main.node(cursor).key, key, 0) == 0;
  if (!found || !main.node(cursor).is_tree()) {
    const auto names = list_names(main, false);
    throw Error(ErrorKind::not_found, fmt::format("no database is named '{}'", printable_key(name)),
                names.empty() ? std::string("leave out the '#': there are no named databases")
                              : fmt::format("choose one of: {}", joined(names)),
                {.file = file});
  }
  const TreeHeader header = decode_tree_header(main.node(cursor).data);
  const std::string fault =
      impossible(header, snapshot.meta().last_page, snapshot.file_pages(), snapshot.page_size());
  if (!fault.empty()) {
    throw Error(ErrorKind::corrupt, fmt::format("database '{}': {}", printable_key(name), fault),
                "restore the file from a copy",
                {.file = file, .offset = cursor.leaf().page * snapshot.page_size()});
  }
  return header;
}

/// Pages that are not there may only be free ones, which a writer has never written.
void refuse_cut_file(PageReader& pages) {
  const Snapshot& snapshot = pages.snapshot();
  const std::uint64_t there = snapshot.file_pages();
  const std::uint64_t counted = snapshot.meta().last_page + 1;
  if (there >= counted) return;
  std::uint64_t free = 0;
  try {
    visit_free_list(pages, [&](const FreePages& list) {
      for (std::uint64_t i = 0; i < list.count(); ++i) free += list[i] >= there ? 1U : 0U;
    });
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
  }
  if (free >= counted - there) return;
  const std::uint64_t bytes = snapshot.file().size();
  throw Error(ErrorKind::corrupt,
              fmt::format("the file was cut short: it has {} bytes, and its meta page counts {} "
                          "pages of {}, which are {} bytes",
                          bytes, counted, snapshot.page_size(), counted * snapshot.page_size()),
              "restore the file from a copy", {.file = snapshot.file().path(), .offset = bytes});
}

/// A mapping covers the size at open; a writer may have made the file longer since.
bool covers(const File& file, const Snapshot& snapshot) {
  const auto map = file.map();
  const std::uint64_t wanted = (snapshot.meta().last_page + 1) * snapshot.page_size();
  return map.empty() || map.size() >= std::min(wanted, file.size());
}

}  // namespace

std::shared_ptr<const Snapshot> open_snapshot(const DatasetPath& path, Engine engine,
                                              std::shared_ptr<const ReaderSlot> slot) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto file = open_file(path.data_file, engine);
    auto snapshot = std::make_shared<const Snapshot>(file, slot);
    if (covers(*file, *snapshot)) return snapshot;
  }
  throw Error(ErrorKind::changed, "the file grows faster than it can be opened",
              "wait until the writer is done", {.file = path.data_file});
}

std::shared_ptr<const Snapshot> open_snapshot(const DatasetPath& path, Engine engine) {
  if (path.foreign) return open_snapshot(path, engine, nullptr);
  // The file first: its errors are clearer than those of liblmdb.
  read_meta_pages(*open_file(path.data_file, Engine::pread));
  for (int attempt = 0; attempt + 1 < kAttempts; ++attempt) {
    const auto slot = ReaderSlot::try_hold(path);
    if (!slot) break;
    try {
      return open_snapshot(path, engine, slot);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::changed) throw;  // else two commits were quicker than we
    }
  }
  return open_snapshot(path, engine, nullptr);
}

Database::Database(std::shared_ptr<const Snapshot> snapshot, std::unique_ptr<PageReader> pages,
                   const TreeHeader& header, std::string name)
    : path_(snapshot->file().path()),
      name_(std::move(name)),
      snapshot_(std::move(snapshot)),
      pages_(std::move(pages)),
      tree_(*pages_, header) {}

Database Database::open(const std::string& path, Engine engine) {
  const DatasetPath resolved = resolve_dataset_path(path);
  Database database = open(open_snapshot(resolved, engine), resolved.name, false);
  database.path_ = path;
  return database;
}

Database Database::open_unheld(const std::string& path, Engine engine) {
  const DatasetPath resolved = resolve_dataset_path(path);
  Database database = open(open_snapshot(resolved, engine, nullptr), resolved.name, false);
  database.path_ = path;
  return database;
}

Database Database::open_container(const std::string& path, Engine engine) {
  const DatasetPath resolved = resolve_dataset_path(path);
  Database database = open(open_snapshot(resolved, engine), resolved.name, true);
  database.path_ = path;
  return database;
}

Database Database::open(std::shared_ptr<const File> file, const std::string& name) {
  return open(std::make_shared<const Snapshot>(std::move(file)), name, false);
}

Database Database::open(std::shared_ptr<const Snapshot> snapshot, const std::string& name,
                        bool allow_named) {
  const std::string& file = snapshot->file().path();
  auto pages = std::make_unique<PageReader>(snapshot);
  refuse_cut_file(*pages);
  TreeHeader header = snapshot->meta().main_tree;
  Tree main(*pages, header);
  std::string stored = name;
  if (!name.empty()) {
    refuse_duplicates(header, file);
    stored = stored_name(main, name);
    header = find_named(main, *snapshot, stored);
  } else if (!allow_named) {
    refuse_container(main, file);
  }
  refuse_duplicates(header, file);
  return Database(std::move(snapshot), std::move(pages), header, std::move(stored));
}

bool Database::may_hold_databases() {
  constexpr std::uint64_t kFewLeaves = 4;
  const Meta& meta = snapshot_->meta();
  if (!name_.empty() || meta.main_tree.empty()) return false;
  if (meta.main_tree.leaf_pages <= kFewLeaves) return true;
  std::uint64_t known = kFirstTreePage + meta.main_tree.pages() + meta.free_tree.pages();
  if (known <= meta.last_page) {
    visit_free_list(*pages_, [&](const FreePages& free) { known += free.count(); });
  }
  return known <= meta.last_page;
}

std::vector<std::string> Database::named_databases() {
  Tree main(*pages_, snapshot_->meta().main_tree);
  return list_names(main, false);
}

DatasetFingerprint Database::fingerprint() const {
  const Meta& meta = snapshot_->meta();
  const TreeHeader& tree = tree_.header();
  std::string text = fmt::format(
      "lmdb:txn={},entries={},root={},free_root={},last_page={},branch={},leaf={},overflow={},"
      "page_size={}",
      meta.transaction, tree.entries, static_cast<std::int64_t>(tree.root),
      static_cast<std::int64_t>(meta.free_tree.root), meta.last_page, tree.branch_pages,
      tree.leaf_pages, tree.overflow_pages, page_size());
  if (!name_.empty()) text += ",name=" + printable_key(name_);
  return {text};
}

std::string Database::cache_identity() {
  std::string identity = fingerprint().text;
  if (tree_.header().empty()) return identity;
  const auto root = pages_->tree_page(tree_.header().root).bytes();
  return identity + ",root_page=" + hash_text(std::string(chars_of(root)));
}

std::uint64_t Database::stored_bytes() const {
  const TreeHeader& tree = tree_.header();
  return (tree.leaf_pages + tree.overflow_pages) * page_size();
}

void Database::remember_records() const {
  constexpr std::uint64_t kParts = 2;
  const Snapshot& snapshot = *snapshot_;
  const TreeHeader& header = tree_.header();
  const std::uint64_t root = header.root * page_size();
  if (!snapshot.has_times() || header.empty() || snapshot.remembers(root)) return;
  PageReader pages(snapshot_);  // one of its own: these pages are none of what is read
  Tree tree(pages, header);
  try {
    snapshot.remember(root, page_size());
    for (std::uint64_t part = 0; part <= kParts; ++part) {
      const Cursor cursor = tree.about(part, kParts);
      const Node node = tree.node(cursor);
      snapshot.remember(cursor.leaf().page * page_size(), page_size());
      if (!node.is_overflow()) continue;
      snapshot.remember(node.overflow_page() * page_size(), kPageHeaderSize + node.value_size);
    }
  } catch (const Error& error) {
    // Damage is told by whoever wants what is damaged.
    log(LogLevel::debug, "{}", error.what());
  }
}

void Database::check_unchanged() const {
  snapshot_->file().check();
  snapshot_->check_unchanged();
}

TreeFacts facts_of(Database& database) {
  const TreeHeader& tree = database.tree().header();
  const Snapshot& snapshot = database.snapshot();
  return {.file = snapshot.file().path(),
          .fingerprint = database.fingerprint().text,
          .entries = tree.entries,
          .leaf_pages = tree.leaf_pages,
          .overflow_pages = tree.overflow_pages,
          .page_size = snapshot.page_size(),
          .tree_flags = tree.flags,
          .end_page = std::min(snapshot.meta().last_page + 1, snapshot.file_pages())};
}

}  // namespace forebay::lmdb
