#include "format/convention/key_words.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "forebay/error.hpp"
#include "format/dataset_files.hpp"

namespace forebay::convention {
namespace {

constexpr std::array kMetadataKeys = {
    MetadataKey{"__keys__", false},   MetadataKey{"__len__", true},
    MetadataKey{"__length__", true},  MetadataKey{"__num_samples__", true},
    MetadataKey{"length", true},      MetadataKey{"nSamples", true},
    MetadataKey{"num-samples", true}, MetadataKey{"num_samples", true},
};
static_assert(std::ranges::is_sorted(kMetadataKeys, {}, &MetadataKey::key));

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_separator(char c) { return c == '-' || c == '_' || c == '/' || c == '.' || c == ':'; }

bool is_words(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c <= 0x7e; });
}

std::optional<std::uint64_t> decimal(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// `bytes` as an integer, the low byte first or last.
std::uint64_t integer(std::string_view bytes, bool low_first) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte =
        static_cast<unsigned char>(low_first ? bytes[bytes.size() - 1 - i] : bytes[i]);
    number = number << 8 | byte;
  }
  return number;
}

/// The argument of one opcode of pickle that pushes an integer which is not negative, and of STOP.
std::optional<std::uint64_t> pickled(std::string_view text) {
  if (text.size() < 2 || text.back() != '.') return std::nullopt;
  text.remove_suffix(1);
  if (text.size() > 2 && text[0] == '\x80') {
    text.remove_prefix(2);
    constexpr std::size_t kFrame = 9;  // an opcode and the length of what follows
    if (text.size() > kFrame && text[0] == '\x95') text.remove_prefix(kFrame);
  }
  if (!text.empty() && text.back() == '\x94') text.remove_suffix(1);  // "remember this"
  if (text.size() < 2) return std::nullopt;
  const char opcode = text[0];
  const std::string_view rest = text.substr(1);
  if (opcode == 'K' && rest.size() == 1) return integer(rest, true);
  if (opcode == 'M' && rest.size() == 2) return integer(rest, true);
  if (opcode == 'J' && rest.size() == 4 && rest[3] >= 0) return integer(rest, true);
  const bool is_long = opcode == '\x8a' && rest.size() <= 9;
  if (is_long && rest.size() == 1U + static_cast<unsigned char>(rest[0]) && rest.back() >= 0) {
    return integer(rest.substr(1), true);
  }
  if ((opcode == 'I' || opcode == 'L') && rest.back() == '\n') {
    std::string_view number = rest.substr(0, rest.size() - 1);
    if (number.ends_with('L')) number.remove_suffix(1);
    return decimal(number);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> msgpack(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto type = static_cast<unsigned char>(text[0]);
  const std::string_view rest = text.substr(1);
  if (rest.empty() && type < 0x80) return type;
  const bool is_unsigned = type >= 0xcc && type <= 0xcf;
  const bool is_signed = type >= 0xd0 && type <= 0xd3;
  if (!is_unsigned && !is_signed) return std::nullopt;
  if (rest.size() != std::size_t{1} << (type & 3U)) return std::nullopt;
  if (is_signed && rest[0] < 0) return std::nullopt;
  return integer(rest, false);
}

}  // namespace

std::span<const MetadataKey> metadata_keys() { return kMetadataKeys; }

const MetadataKey* find_metadata_key(std::string_view key) {
  const auto found = std::ranges::lower_bound(kMetadataKeys, key, {}, &MetadataKey::key);
  return found != kMetadataKeys.end() && found->key == key ? &*found : nullptr;
}

std::vector<std::uint64_t> possible_counts(std::span<const std::byte> value) {
  std::string_view text = chars_of(value);
  std::vector<std::uint64_t> counts;
  const auto add = [&counts](std::optional<std::uint64_t> count) {
    if (count && std::ranges::find(counts, *count) == counts.end()) counts.push_back(*count);
  };
  add(pickled(text));
  add(msgpack(text));
  std::string_view digits = text;
  while (!digits.empty() && (digits.back() == '\n' || digits.back() == '\0')) {
    digits.remove_suffix(1);
  }
  if (const auto number = decimal(digits)) {
    std::erase(counts, *number);
    counts.insert(counts.begin(), *number);
  } else if ((text.size() == 4 || text.size() == 8) && !is_words(text)) {
    const std::uint64_t low_first = integer(text, true);
    const std::uint64_t high_first = integer(text, false);
    add(std::min(low_first, high_first));
    add(std::max(low_first, high_first));
  }
  return counts;
}

std::optional<NumberedKey> numbered_key(std::string_view key) {
  std::size_t begin = key.size();
  while (begin > 0 && is_digit(key[begin - 1])) --begin;
  const std::string_view digits = key.substr(begin);
  const auto number = decimal(digits);
  if (!number) return std::nullopt;
  return NumberedKey{.prefix = key.substr(0, begin), .digits = digits, .number = *number};
}

std::string part_name(std::string_view prefix) {
  while (!prefix.empty() && is_separator(prefix.back())) prefix.remove_suffix(1);
  return field_name(prefix);
}

namespace {

// A sample with more parts than this is none that anybody has made.
constexpr std::size_t kMostGroups = 16;
// Counts have fewer bytes in every form that is known.
constexpr std::uint64_t kMostCounterBytes = 32;

std::string key_at(lmdb::Tree& tree, const lmdb::Cursor& cursor) {
  return std::string(chars_of(tree.node(cursor).key));
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
    const lmdb::Cursor cursor = tree.seek(bytes_of(known.key));
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
    cursor = tree.seek(bytes_of(prefix + ':'));  // ':' comes behind '9'
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
    if (!use(record++, chars_of(tree.node(cursor).key))) return;
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
