#include "format/tfrecord/tfrecord.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>

#include "forebay/error.hpp"

namespace forebay::tfrecord {
namespace {

// Records that tell which features there are, evenly over all.
constexpr std::uint64_t kLookedAt = 32;
constexpr std::size_t kMostParts = 64;
constexpr std::string_view kLengths = ".lengths";
constexpr std::string_view kAnyLength = "[]";

/// Brings a record into the caches before it is used: where records lie apart, a processor does not
/// know the next one by itself, and stops at each page. `whole`: not only its ends, with what tells
/// where features are. Costs little, and reads nothing that could fault. Inline, as what has no
/// effect but this looks to compilers as if it could be left out.
[[gnu::always_inline]] inline void fetch(std::span<const std::byte> bytes, bool whole) {
  constexpr std::size_t kLine = 64, kMost = 4096;
  const std::size_t end = std::min(bytes.size(), whole ? kMost : 2 * kLine);
  for (std::size_t at = 0; at < end; at += kLine) __builtin_prefetch(bytes.data() + at);
  for (const std::size_t back : {std::min(bytes.size(), kLine), std::size_t{1}}) {
    __builtin_prefetch(bytes.data() + bytes.size() - back);
  }
}

/// Of `stored`, a whole record.
std::span<const std::byte> data_of(std::span<const std::byte> stored) {
  return stored.subspan(kHeader, stored.size() - kAround);
}

/// The same. Throws corrupt.
std::span<const std::byte> checked_data(std::span<const std::byte> stored) {
  const auto data = data_of(stored);
  std::uint32_t checksum = 0;
  std::memcpy(&checksum, stored.data() + kHeader + data.size(), sizeof checksum);
  if (masked_crc32c(data) == checksum) return data;
  throw Error(ErrorKind::corrupt, "the data of a record do not fit their checksum", kRestore);
}

const char* name_of(FeatureKind kind) {
  constexpr std::array<const char*, 4> kNames{"nothing", "texts", "floats", "integers"};
  return kNames[static_cast<std::size_t>(kind)];
}

[[noreturn]] void disagree(const WantedFeature& feature, const std::string& what,
                           const std::string& remedy) {
  throw Error(ErrorKind::corrupt,
              fmt::format("feature '{}' {} as in the records that were looked at",
                          shown_name(feature.stored), what),
              remedy);
}

/// What a feature was like in the records that were looked at.
struct SeenFeature {
  FeatureKind kind = FeatureKind::none;
  std::uint64_t records = 0;
  std::uint64_t least = UINT64_MAX;  ///< values
  std::uint64_t most = 0;

  std::optional<std::uint64_t> count(std::uint64_t looked_at) const {
    const bool fixed = records == looked_at && least == most && most > 0;
    return fixed ? std::optional(most) : std::nullopt;
  }
};

}  // namespace

/// A look at some records.
class Look {
 public:
  explicit Look(const RecordSet& data) : data_(data) {
    const std::uint64_t entries = data.facts().entries;
    const std::uint64_t count = std::min(entries, kLookedAt);
    for (std::uint64_t i = 0; i < count; ++i) {
      look_at(count == 1 ? 0 : i * (entries - 1) / (count - 1));
    }
    std::erase_if(seen, [](const auto& one) { return one.second.kind == FeatureKind::none; });
    // Other messages may happen to be Examples; most of them are not.
    if (others > 0 && others <= looked_at / 2) throw *first_other;
    examples = !seen.empty() && others == 0;
  }

  bool examples = false;  ///< all are, and have features
  std::uint64_t looked_at = 0;
  std::uint64_t others = 0;  ///< that are no Examples
  std::map<std::string, SeenFeature> seen;
  double growth = 1;  ///< bytes of values for a byte of a record, at most
  std::optional<Error> first_other;

 private:
  void look_at(std::uint64_t id) {
    const FileExtent extent = data_.extent(id);
    std::vector<std::byte> stored(extent.length);
    const File& file = *data_.files()[extent.file];
    file.read(extent.offset, stored);
    try {
      const auto data = checked_data(stored);
      if (data.empty()) return;
      ++looked_at;
      try {
        take(data);
      } catch (const Error& error) {
        if (others++ == 0)
          first_other = error.within({.file = file.path(), .offset = extent.offset, .sample = id});
      }
    } catch (const Error& error) {
      throw error.within({.file = file.path(), .offset = extent.offset, .sample = id});
    }
  }

  void take(std::span<const std::byte> data) {
    std::uint64_t bytes = 0;
    std::vector<std::byte> memory;
    read_example(data, [&](const Feature& feature) {
      const FeatureValues values = read_values(feature, memory);
      bytes += values.in_place.size();
      SeenFeature& one = seen[std::string(feature.name)];
      if (one.kind == FeatureKind::none) one.kind = feature.kind;
      ++one.records;
      one.least = std::min(one.least, values.count);
      one.most = std::max(one.most, values.count);
    });
    bytes += memory.size();
    growth = std::max(growth, static_cast<double>(bytes) / static_cast<double>(data.size()));
  }

  const RecordSet& data_;
};

RecordSet::RecordSet(std::string path, DataFiles files, RecordIndex index,
                     std::span<const FieldChoice> choices)
    : DataSet(std::move(path), "tfrecord", std::move(files)),
      index_(std::move(index)),
      checked_(index_.begins.size() / 64 + 1) {
  facts_.entries = index_.begins.size();
  for (std::size_t f = 1; f < index_.first.size(); ++f) {
    facts_.of_files.push_back(index_.first[f] - index_.first[f - 1]);
  }
  const Look look(*this);
  std::vector<FieldChoice> wanted(choices.begin(), choices.end());
  if (look.examples && wanted.empty()) {
    for (const auto& [name, seen] : look.seen) {
      wanted.push_back({.name = {}, .stored = name});
      const bool list = seen.kind == FeatureKind::bytes && seen.most > 1;
      if (list) wanted.push_back({.name = {}, .stored = name + std::string(kLengths)});
    }
    if (look.looked_at < facts_.entries) {
      facts_.notes.push_back(
          fmt::format("features are those of {} of {} records; any other is left out",
                      look.looked_at, facts_.entries));
    }
  } else if (!look.examples) {
    if (!wanted.empty()) {
      throw Error(ErrorKind::not_found,
                  "the records are no tf.train.Examples, and have no features",
                  "leave out what is behind the '#'", {.file = facts_.path});
    }
    if (!look.seen.empty()) {
      facts_.notes.push_back(
          fmt::format("{} of {} records that were looked at are no tf.train.Examples: all are "
                      "samples as they are",
                      look.others, look.looked_at));
    }
    facts_.stored.push_back({.how = "a record", .in_place = true});
  }
  for (const FieldChoice& choice : wanted) add_part(choice, look);
  if (facts_.parts.size() > kMostParts) {
    throw Error(ErrorKind::usage, fmt::format("samples have {} parts", facts_.parts.size()),
                fmt::format("name at most {}: FILES#NAME,NAME", kMostParts), {.file = facts_.path});
  }
  tell_sizes(look.growth);
}

void RecordSet::add_part(const FieldChoice& choice, const Look& look) {
  std::string stored = choice.stored;
  bool any_length = false;
  bool lengths = false;
  if (!look.seen.contains(stored) && stored.ends_with(kAnyLength)) {
    any_length = true;
    stored.resize(stored.size() - kAnyLength.size());
  } else if (!look.seen.contains(stored) && stored.ends_with(kLengths)) {
    lengths = true;
    stored.resize(stored.size() - kLengths.size());
  }
  const auto seen = look.seen.find(stored);
  if (seen == look.seen.end() || (lengths && seen->second.kind != FeatureKind::bytes)) {
    std::vector<std::string> names;
    for (const auto& [name, one] : look.seen) names.push_back(shown_name(name));
    throw Error(ErrorKind::not_found,
                fmt::format("no record that was looked at has a feature '{}'", choice.stored),
                fmt::format("there are {}", fmt::join(names, ", ")), {.file = facts_.path});
  }
  const std::string name = !choice.name.empty()
                               ? choice.name
                               : field_name(lengths ? stored + std::string(kLengths) : stored);
  auto feature = std::ranges::find(features_, stored, &WantedFeature::stored);
  if (feature == features_.end()) {
    feature = features_.insert(feature, {.stored = stored, .kind = seen->second.kind});
  }
  std::optional<std::size_t>& part = lengths ? feature->lengths : feature->values;
  if (part || std::ranges::count(facts_.parts, name) > 0) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is named twice", name), "name it once",
                {.file = facts_.path});
  }
  part = facts_.parts.size();
  facts_.parts.push_back(name);
  const bool texts = feature->kind == FeatureKind::bytes;
  const bool floats = feature->kind == FeatureKind::floats;
  facts_.stored.push_back({.how = fmt::format("{} in its record", name_of(feature->kind)),
                           .in_place = (texts && !lengths) || floats});
  std::string codec = lengths || !floats ? "i64" : "f32";
  if (texts && !lengths) codec = "auto";
  if (any_length || feature->lengths) {
    feature->count.reset();
  } else {
    feature->count = texts ? 1 : seen->second.count(look.looked_at);
  }
  if (feature->count && !texts) {
    const std::string shape = *feature->count > 1 ? std::to_string(*feature->count) : "";
    codec = fmt::format("{}:{}[{}]", name, codec, shape);
  }
  facts_.codecs.push_back(std::move(codec));
}

void RecordSet::tell_sizes(double growth) {
  const std::size_t parts = facts_.parts.size();
  facts_.decodes = true;
  if (!features_.empty()) facts_.values = DataSetFacts::Values::in_parts;
  const auto data = static_cast<double>(stored_bytes() - facts_.entries * kAround);
  facts_.value_bytes = static_cast<std::uint64_t>(data * growth);
  // As packed_parts.hpp lays them out.
  if (parts > 1) facts_.value_bytes += facts_.entries * parts * 16;
  facts_.sample_bytes = facts_.entries > 0 ? facts_.value_bytes / facts_.entries : 0;
  facts_.fingerprint =
      fmt::format("{}:samples={},files={},bytes={},parts={},ends={}", facts_.format, facts_.entries,
                  files().size(), stored_bytes(), fmt::join(facts_.parts, "+"),
                  ends_digest(std::as_bytes(std::span(index_.first))));
  if (parts == 1) facts_.parts.clear();
}

FileExtent RecordSet::extent(std::uint64_t id) const {
  const auto after = std::ranges::upper_bound(index_.first, id);
  const auto file = static_cast<std::uint32_t>(after - index_.first.begin() - 1);
  const std::uint64_t end = id + 1 < *after ? index_.begins[id + 1] : bytes_at_open(file);
  return {.file = file, .offset = index_.begins[id], .length = end - index_.begins[id]};
}

/// Records of the samples at each position. Parts that do not lie in their record as they are lie
/// in memory of the plan, which only decoding can size.
class RecordPlan final : public Plan {
 public:
  RecordPlan(const RecordSet& data, std::vector<std::uint64_t> ids)
      : Plan(ids.size()), data_(data), ids_(std::move(ids)) {
    std::uint64_t unit = 0;
    records_.reserve(ids_.size());
    for (std::size_t at = 0; at < ids_.size(); ++at) {
      records_.push_back(data_.extent(ids_[at]));
      unit += records_.back().length;
      if (unit < kUnitBytes && at + 1 < ids_.size()) continue;
      unit_ends_.push_back(at + 1);
      unit = 0;
    }
    memory_.resize(unit_ends_.size());
    pieces_.resize(ids_.size() * (data_.features_.empty() ? 0 : data_.facts().part_count()));
  }

  std::size_t units() const override { return unit_ends_.size(); }

  void decode(std::size_t unit, const FileBytes& bytes, std::span<std::byte>,
              DecodeSpace&) const override {
    memory_[unit].clear();
    const bool mapped = bytes.are_mapped();
    const auto is_sound = [&](std::size_t at) { return mapped && data_.is_checked(ids_[at]); };
    std::array<std::span<const std::byte>, kFetchedAhead> ahead;
    std::size_t fetched = unit == 0 ? 0 : unit_ends_[unit - 1];
    for (std::size_t at = fetched; at < unit_ends_[unit]; ++at) {
      for (; fetched < std::min(at + kFetchedAhead, unit_ends_[unit]); ++fetched) {
        fetch(ahead[fetched % kFetchedAhead] = stored(fetched, bytes), !is_sound(fetched));
      }
      const auto record = ahead[at % kFetchedAhead];
      with_place(at, [&] {
        const bool sound = is_sound(at);
        const auto data = sound ? data_of(record) : checked_data(record);
        if (mapped && !sound) data_.set_checked(ids_[at]);
        if (!data_.features_.empty()) take_apart(at, unit, data);
      });
    }
  }

  std::span<const std::byte> part(std::size_t position, std::size_t part, const FileBytes& bytes,
                                  std::span<const std::byte>) const override {
    const FileExtent& record = records_[position];
    const auto data = [&] {
      return bytes.at(record.file, record.offset + kHeader, record.length - kAround);
    };
    if (data_.features_.empty()) return data();
    const Piece& piece = pieces_[position * data_.facts().part_count() + part];
    if (piece.bytes == 0) return {};
    if (piece.unit == kInRecord) return data().subspan(piece.offset, piece.bytes);
    return std::span<const std::byte>(memory_[piece.unit]).subspan(piece.offset, piece.bytes);
  }

 private:
  // Enough for a thread to be worth waking.
  static constexpr std::uint64_t kUnitBytes = std::uint64_t{256} << 10;
  static constexpr std::size_t kInRecord = SIZE_MAX;
  // Records whose bytes are on their way while those before are used.
  static constexpr std::size_t kFetchedAhead = 4;

  // Whoever uses the files where they are mapped does not need them.
  void find_extents() const override {
    std::call_once(extents_found_, [this] {
      extents_ = records_;
      join(extents_);
    });
  }

  template <typename Work>
  void with_place(std::size_t position, Work&& work) const {
    try {
      work();
    } catch (const Error& error) {
      const FileExtent& record = records_[position];
      throw error.within({.file = data_.files()[record.file]->path(),
                          .offset = record.offset,
                          .sample = ids_[position]});
    }
  }

  std::span<const std::byte> stored(std::size_t position, const FileBytes& bytes) const {
    const FileExtent& record = records_[position];
    std::span<const std::byte> found;
    with_place(position, [&] { found = bytes.at(record.file, record.offset, record.length); });
    return found;
  }

  /// Where a part is.
  struct Piece {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::size_t unit = kInRecord;  ///< whose memory it is in
  };

  void take_apart(std::size_t position, std::size_t unit, std::span<const std::byte> data) const {
    const std::vector<WantedFeature>& wanted = data_.features_;
    const auto pieces = std::span(pieces_).subspan(position * data_.facts().part_count(),
                                                   data_.facts().part_count());
    std::uint64_t found = 0;
    std::size_t next = 0;  // records mostly have their features in one order
    read_example(data, [&](const Feature& feature) {
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const std::size_t number = next + i < wanted.size() ? next + i : next + i - wanted.size();
        if (wanted[number].stored != feature.name) continue;
        if (feature.kind != FeatureKind::none) found |= std::uint64_t{1} << number;
        put(wanted[number], feature, data, unit, pieces);
        next = number + 1;
        return;
      }
    });
    for (std::size_t number = 0; number < wanted.size(); ++number) {
      if ((found >> number & 1) != 0) continue;
      require_count(wanted[number], 0);
    }
  }

  void put(const WantedFeature& wanted, const Feature& feature, std::span<const std::byte> data,
           std::size_t unit, std::span<Piece> pieces) const {
    if (feature.kind == FeatureKind::none) return;
    if (feature.kind != wanted.kind) {
      disagree(wanted, fmt::format("holds {}, not {}", name_of(feature.kind), name_of(wanted.kind)),
               "write the records again, or leave the feature out");
    }
    std::vector<std::byte>& memory = memory_[unit];
    std::vector<std::int64_t> lengths;
    const std::size_t begin = memory.size();
    const FeatureValues values = read_values(feature, memory, wanted.lengths ? &lengths : nullptr);
    if (wanted.kind == FeatureKind::bytes && !wanted.lengths && values.count > 1) {
      disagree(
          wanted, fmt::format("has {} texts, not one", values.count),
          fmt::format("name their lengths as well: FILES#{0},{0}{1}", wanted.stored, kLengths));
    }
    require_count(wanted, values.count);
    if (wanted.values) {
      pieces[*wanted.values] =
          memory.size() > begin
              ? Piece{.offset = begin, .bytes = memory.size() - begin, .unit = unit}
              : Piece{.offset = values.in_place.empty() ? 0
                                                        : static_cast<std::uint64_t>(
                                                              values.in_place.data() - data.data()),
                      .bytes = values.in_place.size()};
    }
    if (wanted.lengths) {
      const auto bytes = std::as_bytes(std::span(lengths));
      pieces[*wanted.lengths] = {.offset = memory.size(), .bytes = bytes.size(), .unit = unit};
      memory.insert(memory.end(), bytes.begin(), bytes.end());
    }
  }

  static void require_count(const WantedFeature& wanted, std::uint64_t count) {
    if (!wanted.count || *wanted.count == count) return;
    disagree(wanted, fmt::format("has {} values, not {}", count, *wanted.count),
             fmt::format("name it as one of any length: 'FILES#{}[]'", shown_name(wanted.stored)));
  }

  const RecordSet& data_;
  mutable std::once_flag extents_found_;
  std::vector<std::uint64_t> ids_;
  std::vector<FileExtent> records_;
  std::vector<std::size_t> unit_ends_;  // positions
  // Each unit writes into its own alone.
  mutable std::vector<std::vector<std::byte>> memory_;
  mutable std::vector<Piece> pieces_;
};

std::unique_ptr<const Plan> RecordSet::plan_runs(std::span<const IdRun> runs) const {
  return std::make_unique<RecordPlan>(*this, ids_of(runs));
}

}  // namespace forebay::tfrecord
