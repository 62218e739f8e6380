#include "format/convention/partners.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "forebay/error.hpp"
#include "format/convention/key_words.hpp"

namespace forebay::convention {
namespace {

/// The databases of one part, in order.
struct Side {
  const std::string& name;
  std::span<lmdb::Database* const> databases;
  std::span<const Layout> layouts;
  std::span<const DatabaseNote> notes;
  RecordMap& records;
};

std::string key_of(lmdb::Database& database, std::uint64_t record) {
  lmdb::Tree& tree = database.tree();
  const bool near_start = record < database.entries() / 2;
  lmdb::Cursor cursor = near_start ? tree.first() : tree.last();
  tree.seek_record(cursor, record);
  return std::string(key_text(tree.node(cursor).key));
}

/// Whether the samples of both are in key order, as many, and begin and end alike.
bool ends_match(lmdb::Database& a, const Layout& of_a, lmdb::Database& b, const Layout& of_b) {
  const RecordMap& x = of_a.parts[0].records;
  const RecordMap& y = of_b.parts[0].records;
  const bool ordered =
      of_a.convention == ConventionName::plain && of_b.convention == ConventionName::plain;
  if (!ordered || x.samples() != y.samples()) return false;
  if (x.samples() == 0) return true;
  const std::uint64_t last = x.samples() - 1;
  return key_of(a, x.record(0)) == key_of(b, y.record(0)) &&
         key_of(a, x.record(last)) == key_of(b, y.record(last));
}

bool in_step(const Side& one, const Side& other) {
  if (one.databases.size() != other.databases.size()) return false;
  for (std::size_t d = 0; d < one.databases.size(); ++d) {
    if (!ends_match(*one.databases[d], one.layouts[d], *other.databases[d], other.layouts[d])) {
      return false;
    }
  }
  return true;
}

struct KeyedSample {
  std::string key;
  std::uint64_t sample = 0;
  std::uint64_t record = 0;
};

/// The samples of a part, by key.
std::vector<KeyedSample> by_key(const Side& side) {
  std::vector<KeyedSample> keyed(side.records.samples());
  std::vector<std::pair<std::uint64_t, std::uint64_t>> order;  // record, sample
  for (std::uint64_t sample = 0; sample < keyed.size(); ++sample) {
    order.emplace_back(side.records.record(sample), sample);
  }
  std::ranges::sort(order);
  std::size_t next = 0;
  for (std::size_t d = 0; d < side.databases.size(); ++d) {
    for_each_key(*side.databases[d], [&](std::uint64_t number, std::string_view key) {
      const std::uint64_t record = side.notes[d].first_record + number;
      if (next < order.size() && order[next].first == record) {
        const std::uint64_t sample = order[next++].second;
        keyed[sample] = {.key = std::string(key), .sample = sample, .record = record};
      }
      return true;
    });
  }
  std::ranges::sort(keyed, {}, &KeyedSample::key);
  const auto same = std::ranges::adjacent_find(keyed, {}, &KeyedSample::key);
  if (same == keyed.end()) return keyed;
  throw Error(ErrorKind::corrupt, fmt::format("the key comes twice in part '{}'", side.name),
              "name databases whose keys differ",
              {.file = side.databases[0]->path(), .key = shown_key(same->key)});
}

[[noreturn]] void missing_partner(const Side& has, const Side& lacks, const std::string& key) {
  throw Error(ErrorKind::corrupt,
              fmt::format("the record has no partner in part '{}' ({})", lacks.name,
                          lacks.databases[0]->path()),
              "add or remove one of them",
              {.file = has.databases[0]->path(), .key = shown_key(key)});
}

/// Gives `other` the order of `one`.
void match_keys(const Side& one, const Side& other) {
  const std::vector<KeyedSample> mine = by_key(one);
  const std::vector<KeyedSample> theirs = by_key(other);
  std::vector<std::uint64_t> records(mine.size());
  for (std::size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
    if (i == theirs.size() || (i < mine.size() && mine[i].key < theirs[i].key)) {
      missing_partner(one, other, mine[i].key);
    }
    if (i == mine.size() || theirs[i].key < mine[i].key) {
      missing_partner(other, one, theirs[i].key);
    }
    records[mine[i].sample] = theirs[i].record;
  }
  RecordMap map;
  for (const std::uint64_t record : records) map.add(record);
  other.records = std::move(map);
}

}  // namespace

void align_parts(const std::vector<PartDatabases>& list, std::span<lmdb::Database* const> databases,
                 const std::vector<Layout>& layouts, const std::vector<DatabaseNote>& notes,
                 std::vector<Convention::Part>& parts) {
  std::vector<Side> sides;
  std::size_t at = 0;
  for (std::size_t p = 0; p < list.size(); ++p) {
    const std::size_t count = list[p].paths.size();
    sides.push_back({.name = list[p].name,
                     .databases = databases.subspan(at, count),
                     .layouts = std::span(layouts).subspan(at, count),
                     .notes = std::span(notes).subspan(at, count),
                     .records = parts[p].records});
    at += count;
  }
  for (std::size_t p = 1; p < sides.size(); ++p) {
    if (!in_step(sides[0], sides[p])) match_keys(sides[0], sides[p]);
  }
}

}  // namespace forebay::convention
