#include "format/convention/key_look.hpp"

#include <algorithm>

#include "forebay/error.hpp"
#include "format/convention/key_words.hpp"

namespace forebay::convention {
namespace {

// A sample with more parts than this is none that anybody has made.
constexpr std::size_t kMostGroups = 16;
// Counts have fewer bytes in every form that is known.
constexpr std::uint64_t kMostCounterBytes = 32;

std::string key_at(lmdb::Tree& tree, const lmdb::Cursor& cursor) {
  return std::string(key_text(tree.node(cursor).key));
}

MetadataRecord metadata_at(lmdb::Tree& tree, const lmdb::Cursor& cursor, const MetadataKey& known) {
  MetadataRecord record{.key = std::string(known.key),
                        .counts = {},
                        .value_bytes = tree.node(cursor).value_size,
                        .record = 0};
  if (known.counts && record.value_bytes <= kMostCounterBytes) {
    record.counts = possible_counts(tree.entry(cursor).value);
  }
  return record;
}

std::vector<MetadataRecord> find_metadata(lmdb::Tree& tree, const KeyLook& look) {
  std::vector<MetadataRecord> found;
  for (const MetadataKey& known : metadata_keys()) {
    if (known.key < look.first_key || known.key > look.last_key) continue;
    const lmdb::Cursor cursor = tree.seek(key_bytes(known.key));
    if (cursor.valid() && key_at(tree, cursor) == known.key) {
      found.push_back(metadata_at(tree, cursor, known));
    }
  }
  return found;
}

/// The last record before `end`, the first whose key is not less than all of some prefix.
lmdb::Cursor before(lmdb::Tree& tree, lmdb::Cursor end) {
  if (!end.valid()) return tree.last();
  tree.previous(end);
  return end;
}

std::vector<KeyGroup> find_groups(lmdb::Tree& tree) {
  std::vector<KeyGroup> groups;
  lmdb::Cursor cursor = tree.first();
  while (cursor.valid()) {
    const std::string key = key_at(tree, cursor);
    if (find_metadata_key(key) != nullptr) {
      tree.next(cursor);
      continue;
    }
    const auto first = numbered_key(key);
    if (!first || groups.size() == kMostGroups) return {};
    const std::string prefix(first->prefix);
    cursor = tree.seek(key_bytes(prefix + ':'));  // ':' comes behind '9'
    const lmdb::Cursor end = before(tree, cursor);
    if (!end.valid()) return {};
    const std::string last_key = key_at(tree, end);
    const auto last = numbered_key(last_key);
    if (!last || last->prefix != prefix) return {};
    groups.push_back({prefix, std::string(first->digits), std::string(last->digits)});
  }
  return groups;
}

}  // namespace

std::string shown_key(std::string_view key) { return printable_key(key); }

KeyLook look_at_keys(lmdb::Database& database) {
  lmdb::Tree& tree = database.tree();
  KeyLook look{.entries = database.entries()};
  constexpr unsigned kOtherOrders = lmdb::kTreeReverseKey | lmdb::kTreeIntegerKey;
  look.bytes_order = (tree.header().flags & kOtherOrders) == 0;
  if (look.entries == 0) return look;
  look.first_key = key_at(tree, tree.first());
  look.last_key = key_at(tree, tree.last());
  if (!look.bytes_order) return look;
  look.metadata = find_metadata(tree, look);
  look.groups = find_groups(tree);
  return look;
}

void for_each_key(lmdb::Database& database,
                  const std::function<bool(std::uint64_t, std::string_view)>& use) {
  lmdb::Tree& tree = database.tree();
  lmdb::Cursor cursor = tree.first();
  std::uint64_t record = 0;
  for (bool more = cursor.valid(); more; more = tree.next(cursor)) {
    if (!use(record++, key_text(tree.node(cursor).key))) return;
  }
}

void number_metadata(lmdb::Database& database, std::vector<MetadataRecord>& metadata) {
  lmdb::Tree& tree = database.tree();
  const auto is_at = [&](const lmdb::Cursor& cursor, const MetadataRecord& one) {
    return cursor.valid() && key_at(tree, cursor) == one.key;
  };
  std::size_t begin = 0;
  std::size_t end = metadata.size();
  for (lmdb::Cursor cursor = tree.first(); begin < end && is_at(cursor, metadata[begin]);
       tree.next(cursor)) {
    metadata[begin].record = begin;
    ++begin;
  }
  std::uint64_t record = database.entries();
  for (lmdb::Cursor cursor = tree.last(); end > begin && is_at(cursor, metadata[end - 1]);
       tree.previous(cursor)) {
    metadata[--end].record = --record;
  }
  if (begin == end) return;
  for_each_key(database, [&](std::uint64_t number, std::string_view key) {
    if (key == metadata[begin].key) metadata[begin++].record = number;
    return begin < end;
  });
}

}  // namespace forebay::convention
