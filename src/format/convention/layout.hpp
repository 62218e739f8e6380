// What the records of one database are: the samples' parts, and which records they are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/dataset.hpp"
#include "format/convention/key_words.hpp"

namespace forebay::convention {

// Which record of a data set is sample i: stretches of records that follow each other where that
// is shorter, else one number a sample.
//
//   samples   0 ...... 4 | 5 6 | 7 ........ 20        runs: 16 bytes each
//   records   8 ..... 12 | 2 3 | 30 ....... 43
//
// Records are numbered over all databases of a data set.

class RecordMap {
 public:
  /// Samples from `sample` on, up to the next run, are records from `record` on.
  struct Run {
    std::uint64_t sample = 0;
    std::uint64_t record = 0;
    bool operator==(const Run&) const = default;
  };

  RecordMap() = default;
  /// Samples are records `first` to `first` + `count` - 1.
  static RecordMap of_range(std::uint64_t first, std::uint64_t count);

  void add(std::uint64_t record) { add_range(record, 1); }
  void add_range(std::uint64_t first, std::uint64_t count);
  /// Appends what `other` has, its records `shift` further on.
  void append(const RecordMap& other, std::uint64_t shift);
  /// Takes the shorter form. Before the first look-up, and not changed after it.
  void finish();

  std::uint64_t samples() const { return samples_; }
  std::uint64_t record(std::uint64_t sample) const;
  /// Whether samples are records 0, 1, 2 ... of `records`.
  bool is_plain(std::uint64_t records) const;
  std::uint64_t memory_bytes() const;
  /// Of all numbers; the same for both forms.
  std::uint64_t digest() const;

  /// Calls use(first record, count) for stretches of samples [first, first + count), in order.
  template <typename Use>
  void for_each_run(std::uint64_t first, std::uint64_t count, Use&& use) const {
    while (count > 0) {
      const Stretch stretch = stretch_at(first, count);
      use(stretch.record, stretch.count);
      first += stretch.count;
      count -= stretch.count;
    }
  }

 private:
  struct Stretch {
    std::uint64_t record = 0;
    std::uint64_t count = 0;
  };
  Stretch stretch_at(std::uint64_t sample, std::uint64_t most) const;

  std::uint64_t samples_ = 0;
  std::vector<Run> runs_;
  std::vector<std::uint64_t> records_;  ///< of each sample, when that is shorter
};

/// What the user says of it.
struct ConventionOptions {
  ConventionName convention = ConventionName::automatic;
  KeyOrder order_by = KeyOrder::key;
  std::string leave_out = {};  ///< KeyPatterns: these records are no samples
  std::string keep = {};       ///< KeyPatterns: these are, whatever they look like

  KeyChoice choice() const {
    return {.leave_out = leave_out,
            .keep = keep,
            .guess = convention != ConventionName::plain,
            .grouped = convention == ConventionName::grouped};
  }
};

/// One part of every sample of a database.
struct LayoutPart {
  std::string name;    ///< empty where samples have one part without a name
  std::string prefix;  ///< of its keys, before the number
  RecordMap records;
};

struct Layout {
  ConventionName convention = ConventionName::plain;
  std::string why;                ///< what it was told by
  std::vector<LayoutPart> parts;  ///< all with as many samples
  std::vector<MetadataRecord> metadata;
  std::string form;        ///< KeyLook::form
  std::string guess;       ///< KeyLook::guess, where every record is a sample
  std::vector<bool> used;  ///< KeyLook::used

  std::uint64_t samples() const { return parts[0].records.samples(); }
};

/// Looks at `database`; reads all keys only where counts and ends do not tell. Throws corrupt for
/// counts, numbers and lists that contradict the records, naming both; usage for a convention that
/// is not that of the data; io, changed.
Layout lay_out(lmdb::Database& database, const ConventionOptions& options);

/// Where every record is a sample, in key order, as far as a bounded look tells: KeyLook::guess;
/// else nothing. Bytes that cannot be understood are left to whoever reads them.
std::optional<std::string> guess_of_plain(lmdb::Database& database,
                                          const ConventionOptions& options);

// Parts of lay_out().

/// Whether the look says that samples have several parts. `asked`: the user says so.
bool looks_grouped(const KeyLook& look, bool asked);
/// Whether parts of samples are often called like this prefix.
bool is_usual_part(const std::string& prefix);
/// Whether a part of samples may be called so: begins with a letter, and tells no split.
bool may_name_part(const std::string& name);
/// KeyLook::guess: of prefixes that may be names of parts, where nothing says that they are.
std::string guess_of_groups(const KeyLook& look);
/// Throws corrupt naming a missing partner.
Layout lay_out_groups(lmdb::Database& database, const KeyLook& look);
/// The order of numbers in the keys, metadata left out. Throws usage naming a key without one.
RecordMap order_by_number(lmdb::Database& database, const std::vector<MetadataRecord>& metadata);

/// The list beside the data file, whether it exists or not; empty where there can be none.
std::string meta_info_path(const lmdb::Database& database);
/// As the list at `path` says, which names no record of `metadata` that is none of its own.
Layout lay_out_by_list(lmdb::Database& database, const std::string& path,
                       const std::vector<MetadataRecord>& metadata);

/// "length (10), nextid": all records that are no samples; of many, the first.
std::string names_of(const std::vector<MetadataRecord>& metadata);
/// Throws corrupt when a counter contradicts `samples`.
void check_counters(const lmdb::Database& database, const std::vector<MetadataRecord>& metadata,
                    std::uint64_t samples);

// meta_info.txt: how image-restoration programs (BasicSR) tell what is in a database beside it.
//
//   0001_s001.png (480,480,3) 1        file name, shape (height, width, channels), compression
//   level 000/00000002.png (720,1280,3) 1
//
// The key of a record is the file name without its extension; samples come in the order of lines.

struct MetaLine {
  std::string name;                  ///< as written
  std::vector<std::uint64_t> shape;  ///< empty: not said

  /// `name` without its extension.
  std::string_view stem() const;
};

/// Larger files are refused.
inline constexpr std::uint64_t kMostMetaInfoBytes = std::uint64_t{1} << 30;

/// Throws corrupt naming `file` and the line for what is no such line, and for a name that appears
/// twice.
std::vector<MetaLine> parse_meta_info(std::string_view text, const std::string& file);

}  // namespace forebay::convention
