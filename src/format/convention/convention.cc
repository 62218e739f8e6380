#include "format/convention/convention.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/names.hpp"
#include "forebay/error.hpp"
#include "format/convention/key_words.hpp"

namespace forebay {
namespace {

constexpr Name<ConventionName> kConventions[] = {
    {"auto", ConventionName::automatic},
    {"plain", ConventionName::plain},
    {"grouped", ConventionName::grouped},
    {"meta-info", ConventionName::meta_info},
};
constexpr Name<KeyOrder> kKeyOrders[] = {{"key", KeyOrder::key}, {"number", KeyOrder::number}};

}  // namespace

std::string_view to_string(ConventionName name) { return name_of(name, kConventions); }
std::string_view to_string(KeyOrder order) { return name_of(order, kKeyOrders); }

}  // namespace forebay

namespace forebay::convention {
namespace {

void require_same_parts(const Layout& first, const Layout& other, const std::string& path) {
  const auto names = [](const Layout& layout) {
    std::vector<std::string> all;
    for (const LayoutPart& part : layout.parts) all.push_back(part.prefix + "|" + part.name);
    return all;
  };
  if (names(first) == names(other)) return;
  throw Error(ErrorKind::corrupt, "its samples have other parts than those of the first database",
              "name databases of one kind together", {.file = path});
}

void refuse_parts_of_parts(const std::string& path) {
  throw Error(ErrorKind::unsupported,
              "its samples have several parts, and it is to be one part of others",
              "use it alone, or read it with --convention plain", {.file = path});
}

/// What is left out has to be there, in one of the databases.
void require_used(const ConventionOptions& options, const std::vector<Layout>& layouts,
                  const std::string& path) {
  const KeyPatterns leave_out(options.leave_out);
  for (std::size_t i = 0; i < leave_out.all().size(); ++i) {
    if (std::ranges::any_of(layouts, [&](const Layout& layout) { return layout.used[i]; })) {
      continue;
    }
    throw Error(
        ErrorKind::usage,
        fmt::format("no record is called '{}', which is to be left out", leave_out.all()[i]),
        "take it out of --leave-out; 'forebay inspect' shows keys", {.file = path});
  }
}

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
  return std::string(chars_of(tree.node(cursor).key));
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

/// Where both are in key order, database by database, with the same counts and the same first and
/// last keys, records are taken to be partners in order, and their keys are compared when they are
/// read. Else all keys are compared now. Throws corrupt naming the key that has no partner.
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

}  // namespace

Convention Convention::arrange(const std::vector<PartDatabases>& list,
                               std::span<lmdb::Database* const> databases,
                               const ConventionOptions& options) {
  Convention result;
  std::vector<Layout> layouts;
  std::uint64_t records = 0;
  for (lmdb::Database* database : databases) {
    Layout& layout = layouts.emplace_back(lay_out(*database, options));
    result.databases_.push_back({.path = database->path(),
                                 .first_record = records,
                                 .records = database->entries(),
                                 .convention = layout.convention,
                                 .why = layout.why,
                                 .metadata = layout.metadata,
                                 .form = layout.form,
                                 .guess = layout.guess});
    records += database->entries();
  }
  require_used(options, layouts, databases[0]->path());
  std::size_t at = 0;
  for (const PartDatabases& part : list) {
    const std::size_t begin = at;
    const std::vector<LayoutPart>& model = layouts[begin].parts;
    const std::size_t before = result.parts_.size();
    for (const LayoutPart& one : model) {
      result.parts_.push_back({.name = list.size() > 1 ? part.name : one.name,
                               .prefix = one.prefix,
                               .records = {},
                               .first_database = begin});
    }
    if (list.size() > 1 && model.size() > 1) refuse_parts_of_parts(databases[begin]->path());
    for (; at < begin + part.paths.size(); ++at) {
      require_same_parts(layouts[begin], layouts[at], databases[at]->path());
      if (begin == 0) result.bounds_.push_back(result.parts_[0].records.samples());
      for (std::size_t p = 0; p < model.size(); ++p) {
        result.parts_[before + p].records.append(layouts[at].parts[p].records,
                                                 result.databases_[at].first_record);
      }
    }
  }
  if (list.size() > 1) align_parts(list, databases, layouts, result.databases_, result.parts_);
  result.bounds_.push_back(result.samples());
  std::erase_if(result.bounds_,
                [&, last = std::uint64_t{0}, first = true](std::uint64_t b) mutable {
                  const bool repeats = !first && b == last;  // a database without samples
                  first = false;
                  last = b;
                  return repeats;
                });
  if (result.bounds_.size() < 3) result.bounds_.clear();
  for (Part& part : result.parts_) part.records.finish();
  return result;
}

std::vector<std::string> Convention::part_names() const {
  std::vector<std::string> names;
  if (!has_parts()) return names;
  for (const Part& part : parts_) names.push_back(part.name);
  return names;
}

std::string Convention::text() const {
  std::string text(to_string(databases_[0].convention));
  if (has_parts()) text += fmt::format(" ({})", fmt::join(part_names(), ", "));
  if (databases_.size() > 1) text += fmt::format(", {} databases", databases_.size());
  return text;
}

std::string Convention::fingerprint() const {
  std::string text;
  for (const Part& part : parts_) {
    text += fmt::format(",part={}:{:016x}", part.name, part.records.digest());
  }
  return text;
}

std::uint64_t Convention::memory_bytes() const {
  std::uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.records.memory_bytes();
  return bytes;
}

}  // namespace forebay::convention
