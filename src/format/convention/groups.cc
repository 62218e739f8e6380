// Samples whose parts have keys of their own: "image-000000001" and "label-000000001".
//
// Keys of one prefix follow each other in the tree. Where all numbers have one width, the first and
// the last key of each prefix and the number of all records say that none is missing: a prefix has
// at most last - first + 1 keys, and if any had fewer, the sum would be too small. Else all keys
// are looked at. Readers compare the keys of the parts of each sample anyway.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "forebay/error.hpp"
#include "format/convention/key_words.hpp"
#include "format/convention/layout.hpp"
#include "format/repeated_names.hpp"

namespace forebay::convention {
namespace {

/// What parts of samples are called.
constexpr std::array<std::string_view, 63> kPartNames = {"ann",       "annotation", "annotations",
                                                         "answer",    "audio",      "bbox",
                                                         "bboxes",    "boxes",      "caption",
                                                         "captions",  "cls",        "depth",
                                                         "embedding", "feat",       "feats",
                                                         "feature",   "features",   "flow",
                                                         "gt",        "height",     "hq",
                                                         "hr",        "image",      "images",
                                                         "img",       "imgs",       "input",
                                                         "inputs",    "label",      "labels",
                                                         "lq",        "lr",         "mask",
                                                         "masks",     "meta",       "metadata",
                                                         "name",      "normal",     "normals",
                                                         "output",    "outputs",    "path",
                                                         "pose",      "prompt",     "question",
                                                         "rgb",       "seg",        "segmentation",
                                                         "semantic",  "source",     "src",
                                                         "target",    "targets",    "text",
                                                         "tgt",       "token",      "tokens",
                                                         "txt",       "video",      "wh",
                                                         "width",     "x",          "y"};
static_assert(std::ranges::is_sorted(kPartNames));

std::uint64_t number_of(const std::string& digits) {
  std::uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

bool has_separator(const std::string& prefix) {
  return !prefix.empty() && !part_name(prefix).empty() && part_name(prefix).size() < prefix.size();
}

/// Whether some counter has `count`.
bool is_counted(const KeyLook& look, std::uint64_t count) {
  return std::ranges::any_of(look.metadata, [count](const MetadataRecord& record) {
    return std::ranges::find(record.counts, count) != record.counts.end();
  });
}

/// The words of a prefix, in small letters and without numbers at their ends: "Train2014_img-" is
/// "train" and "img".
std::vector<std::string> words_of(const std::string& prefix) {
  std::vector<std::string> words(1);
  for (const char c : prefix) {
    if (std::string_view("-_/.:").find(c) != std::string_view::npos) {
      words.emplace_back();
    } else {
      words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  for (std::string& word : words) {
    const std::size_t end = word.find_last_not_of("0123456789");
    if (end != std::string::npos) word.resize(end + 1);
  }
  std::erase(words, std::string());
  return words;
}

using Words = std::vector<std::string>;

/// Those that tell the prefixes apart: "test_image-" and "test_label-" are "image" and "label".
std::vector<Words> own_words(const KeyLook& look) {
  std::vector<Words> all;
  for (const KeyGroup& group : look.groups) all.push_back(words_of(group.prefix));
  const auto all_share = [&](auto&& at) {
    return std::ranges::all_of(
        all, [&](const Words& words) { return words.size() > 1 && at(words) == at(all[0]); });
  };
  while (all_share([](const Words& words) { return words.front(); })) {
    for (Words& words : all) words.erase(words.begin());
  }
  while (all_share([](const Words& words) { return words.back(); })) {
    for (Words& words : all) words.pop_back();
  }
  return all;
}

/// Names begin with a letter, of any alphabet, and tell no split.
bool may_be_part(const Words& words) {
  if (words.empty()) return false;
  const auto first = static_cast<unsigned char>(words[0][0]);
  const bool letter = (first >= 'a' && first <= 'z') || first >= 0x80;
  return letter && std::ranges::none_of(words, is_split_name);
}

bool is_usual(const Words& words) {
  return std::ranges::any_of(
      words, [](const std::string& word) { return std::ranges::binary_search(kPartNames, word); });
}

/// Of prefixes.
enum class Parts : std::uint8_t {
  none,   ///< they are none
  maybe,  ///< they may be, and nothing but equal numbers says so
  sure,   ///< a counter or what they are called says so
};

/// Samples, were the prefixes parts: by all records, and by the numbers of one.
bool is_counted_so(const KeyLook& look) {
  const std::uint64_t records = look.entries - look.metadata.size();
  const KeyGroup& model = look.groups[0];
  if (records % look.groups.size() == 0 && is_counted(look, records / look.groups.size())) {
    return true;
  }
  const std::uint64_t first = number_of(model.first), last = number_of(model.last);
  return first <= 1 && last >= first && is_counted(look, last - first + 1);
}

Parts parts_of(const KeyLook& look) {
  const std::vector<Words> words = own_words(look);
  if (!std::ranges::all_of(look.groups, has_separator, &KeyGroup::prefix) ||
      !std::ranges::all_of(words, may_be_part) ||
      is_counted(look, look.entries - look.metadata.size())) {
    return Parts::none;
  }
  const auto usual = std::ranges::count_if(words, is_usual);
  if (usual == std::ssize(words) || is_counted_so(look)) return Parts::sure;
  const KeyGroup& model = look.groups[0];
  const bool same = std::ranges::all_of(look.groups, [&](const KeyGroup& group) {
    return group.first == model.first && group.last == model.last;
  });
  if (!same || number_of(model.first) > 1) return Parts::none;
  return usual >= 2 ? Parts::sure : Parts::maybe;
}

/// One prefix and its keys by number.
struct Found {
  struct Key {
    std::uint64_t number = 0;
    std::uint64_t record = 0;
    std::size_t width = 0;  ///< digits
  };
  std::string prefix;
  std::vector<Key> keys;

  std::string key(const Key& of) const {
    return fmt::format("{}{:0{}}", prefix, of.number, of.width);
  }
};

std::string joined_prefixes(const KeyLook& look) {
  std::string text;
  for (const KeyGroup& group : look.groups) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", shown_key(group.prefix), group.first);
  }
  return text;
}

/// The parts without any records yet.
Layout empty_layout(const KeyLook& look) {
  Layout layout;
  layout.convention = ConventionName::grouped;
  layout.why = "keys of several prefixes with the same numbers: " + joined_prefixes(look);
  layout.metadata = look.metadata;
  for (const KeyGroup& group : look.groups) {
    std::string name = part_name(group.prefix);
    const bool taken = name.empty() || std::ranges::find(layout.parts, name, &LayoutPart::name) !=
                                           layout.parts.end();
    if (taken) name = fmt::format("{}_{}", name.empty() ? "part" : name, layout.parts.size());
    layout.parts.push_back({.name = std::move(name), .prefix = group.prefix, .records = {}});
  }
  return layout;
}

/// Samples of each prefix, where the look alone says that all are there; else 0.
std::uint64_t complete_count(const KeyLook& look) {
  const KeyGroup& model = look.groups[0];
  const std::uint64_t first = number_of(model.first);
  const std::uint64_t last = number_of(model.last);
  for (const KeyGroup& group : look.groups) {
    if (group.first != model.first || group.last != model.last) return 0;
  }
  const std::uint64_t records = look.entries - look.metadata.size();
  if (model.first.size() != model.last.size() || last < first) return 0;
  const std::uint64_t span = last - first;
  const bool all = span < records && (span + 1) * look.groups.size() == records;
  return all ? span + 1 : 0;
}

/// Each prefix is a stretch of records, with metadata between them.
void place_stretches(Layout& layout, std::uint64_t samples) {
  std::vector<std::pair<std::string, std::size_t>> starts;  // of parts, then of metadata
  for (std::size_t i = 0; i < layout.parts.size(); ++i) {
    starts.emplace_back(layout.parts[i].prefix + '0', i);
  }
  for (std::size_t i = 0; i < layout.metadata.size(); ++i) {
    starts.emplace_back(layout.metadata[i].key, layout.parts.size() + i);
  }
  std::ranges::sort(starts);
  std::uint64_t record = 0;
  for (const auto& [key, what] : starts) {
    if (what < layout.parts.size()) {
      layout.parts[what].records = RecordMap::of_range(record, samples);
      record += samples;
    } else {
      layout.metadata[what - layout.parts.size()].record = record++;
    }
  }
}

void add_key(lmdb::Database& database, std::vector<Found>& found, std::uint64_t record,
             std::string_view key) {
  const auto numbered = numbered_key(key);
  const auto at =
      numbered ? std::ranges::find(found, numbered->prefix, &Found::prefix) : found.end();
  if (at == found.end()) {
    throw Error(ErrorKind::corrupt,
                "the key is not made like the others, which are prefixes with the same numbers",
                "name it in --leave-out, or read all records as they are with --convention plain",
                {.file = database.path(), .key = shown_key(key)});
  }
  at->keys.push_back({numbered->number, record, numbered->digits.size()});
}

std::vector<Found> walk(lmdb::Database& database, Layout& layout) {
  std::vector<Found> found;
  for (const LayoutPart& part : layout.parts) found.push_back({.prefix = part.prefix, .keys = {}});
  std::size_t next = 0;
  for_each_key(database, [&](std::uint64_t record, std::string_view key) {
    if (next < layout.metadata.size() && key == layout.metadata[next].key) {
      layout.metadata[next++].record = record;
    } else {
      add_key(database, found, record, key);
    }
    return true;
  });
  for (Found& group : found) std::ranges::sort(group.keys, {}, &Found::Key::number);
  return found;
}

void require_different(const lmdb::Database& database, const Found& group) {
  const auto same = std::ranges::adjacent_find(group.keys, {}, &Found::Key::number);
  if (same == group.keys.end()) return;
  throw Error(ErrorKind::corrupt,
              fmt::format("keys {} and {} have one number", shown_key(group.key(same[0])),
                          shown_key(group.key(same[1]))),
              "remove one of them, or read all records as they are with --convention plain",
              {.file = database.path()});
}

/// Names the first record of `one` that has no partner in `other`, or none.
void require_partners(const lmdb::Database& database, const Found& one, const Found& other) {
  for (const Found::Key& key : one.keys) {
    const auto at = std::ranges::lower_bound(other.keys, key.number, {}, &Found::Key::number);
    if (at != other.keys.end() && at->number == key.number) continue;
    const std::string name = one.key(key);
    throw Error(
        ErrorKind::corrupt,
        fmt::format("record {} has no partner {}", shown_key(name),
                    shown_key(other.key({key.number, 0, key.width}))),
        "add or remove one of them, or read all records as they are with --convention plain",
        {.file = database.path(), .key = shown_key(name)});
  }
}

void require_same_numbers(const lmdb::Database& database, const Found& one, const Found& other) {
  require_partners(database, one, other);
  require_partners(database, other, one);
}

}  // namespace

bool may_name_part(const std::string& name) { return may_be_part(words_of(name)); }

bool is_usual_part(const std::string& prefix) { return is_usual(words_of(prefix)); }

bool looks_grouped(const KeyLook& look, bool asked) {
  return look.groups.size() >= 2 && (asked || parts_of(look) == Parts::sure);
}

std::string guess_of_groups(const KeyLook& look) {
  if (parts_of(look) != Parts::maybe) return {};
  constexpr std::size_t kMostNames = 4;
  KeyLook some = look;
  some.groups.resize(std::min(some.groups.size(), kMostNames));
  return fmt::format(
      "keys of {} prefixes have the same numbers ({}{}), and each is taken for a sample of its "
      "own: "
      "--convention grouped makes them parts of samples, --convention plain says that they are "
      "none",
      look.groups.size(), joined_prefixes(some), look.groups.size() > kMostNames ? ", ..." : "");
}

Layout lay_out_groups(lmdb::Database& database, const KeyLook& look) {
  Layout layout = empty_layout(look);
  if (const std::uint64_t samples = complete_count(look); samples > 0) {
    place_stretches(layout, samples);
  } else {
    const std::vector<Found> found = walk(database, layout);
    for (const Found& group : found) require_different(database, group);
    for (const Found& group : found) require_same_numbers(database, found[0], group);
    for (std::size_t i = 0; i < found.size(); ++i) {
      for (const Found::Key& key : found[i].keys) layout.parts[i].records.add(key.record);
    }
  }
  check_counters(database, layout.metadata, layout.samples());
  return layout;
}

}  // namespace forebay::convention
