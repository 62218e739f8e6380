// A data set as every format has it: samples of named parts, where their bytes are, and how bytes
// become values.
//
//   facts()     entries, fields or parts, fingerprint: everything known since open
//   plan_runs() which bytes these samples need: each once
//
// Reading some ids takes four steps, of which the second is the caller's, with any engine:
//
//   plan      data.plan(ids)
//   read      plan.extents()             into memory, wherever the caller likes
//   decode    plan.decode(unit, ...)     only what cannot be used as it lies: filtered or split
//                                        chunks, deflated members, numbers of another byte order;
//                                        and checks checksums; units are independent
//   use       plan.unpack(...)           names and parts of all samples, in place or decoded; a
//             plan.part(position, p, ..) sample's value is made of its parts
//
// Where samples are may be something that has to be found out beside opening (an index of LMDB):
// by locate(), by all who read together, or else at the first plan, by this process alone.
//
// A value is the sample's only part; or all fields, where all have fixed sizes, one behind the
// other; or else its parts, packed (forebay/packed_parts.hpp).
//
// A data set never changes after it was opened and keeps no library's handle: all const methods may
// be called from many threads at once, and before and after a fork. All is local.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/non_copyable.hpp"
#include "forebay/dataset.hpp"
#include "forebay/error.hpp"
#include "forebay/storage.hpp"
#include "format/peers.hpp"
#include "format/record_source.hpp"

namespace forebay {

class BulkReader;

/// A stretch of one file of a data set.
struct FileExtent {
  std::uint32_t file = 0;  ///< index into the data set's files
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool common = false;  ///< serves neighbouring samples too: worth keeping where they come later
  bool operator==(const FileExtent&) const = default;
};

/// Samples whose ids follow each other.
struct IdRun {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const IdRun&) const = default;
};

/// Samples of all.
std::uint64_t count_of(std::span<const IdRun> runs);
/// `ids`, in order, as runs.
std::vector<IdRun> runs_of(std::span<const std::uint64_t> ids);

/// What was said about where samples are does not fit the bytes: an index is stale, foreign or
/// damaged. The remedy is to find out in another way, not another copy of the files.
class IndexMismatch : public Error {
 public:
  using Error::Error;
};

/// Sorts by file and offset, and joins what touches or overlaps.
void join(std::vector<FileExtent>& extents);

/// The bytes of extents, once they are in memory. Safe to use from many threads at once.
class FileBytes {
 public:
  /// The bytes of [offset, offset + length), which lie inside one extent of a plan.
  virtual std::span<const std::byte> at(std::uint32_t file, std::uint64_t offset,
                                        std::uint64_t length) const = 0;
  /// Whether they are the files' own, mapped: what was found sound stays so while the files do.
  virtual bool are_mapped() const { return false; }

 protected:
  ~FileBytes() = default;
};

/// Memory that decoding needs beside its output: one a thread, kept from call to call.
struct DecodeSpace {
  std::vector<std::byte> first;
  std::vector<std::byte> second;
};

/// What a data set did so far, in units that do not depend on timing.
struct DecodeCounters {
  std::uint64_t chunks = 0;         ///< filtered chunks decoded
  std::uint64_t bytes_decoded = 0;  ///< bytes of these chunks once decoded
  // Of its own beside what plans asked for: looks at pages of its index.
  std::uint64_t requests = 0;
  std::uint64_t bytes_requested = 0;
  std::uint64_t pages_visited = 0;
};

/// One sample of a plan, as unpack() hands it over. What the spans refer to lies inside the bytes
/// that were read, inside the scratch memory, or in the data set, and lives as long as that.
struct FoundSample {
  std::size_t position = 0;
  std::span<const std::byte> key;  ///< empty unless facts().named
  std::span<const std::span<const std::byte>> parts;
};
using FoundSink = std::function<void(const FoundSample&)>;

/// The bytes that one list of ids needs, and the way from them to parts. The data set outlives it.
/// Const methods are safe to call from many threads at once.
class Plan : private NonCopyable {
 public:
  virtual ~Plan() = default;

  /// By file and offset, none inside of another; what must be decoded together is named whole,
  /// once.
  const std::vector<FileExtent>& extents() const {
    find_extents();
    return extents_;
  }
  /// As many as there were before what serves several samples was named once.
  std::size_t named_extents() const { return std::max(named_, extents().size()); }
  /// Positions, as many as ids were given.
  std::size_t size() const { return size_; }
  /// Bytes that decode() writes in all; 0 when every part can be used where it lies.
  std::uint64_t scratch_bytes() const { return scratch_bytes_; }
  /// Calls of decode() that are needed before part(); those that need none do nothing about both.
  virtual std::size_t units() const { return 0; }

  /// Decodes unit number `unit` from `bytes` into its places of `scratch`, which has
  /// scratch_bytes() and starts at a multiple of 64. Different units never touch the same byte.
  /// Throws corrupt, naming file and offset.
  virtual void decode(std::size_t /*unit*/, const FileBytes& /*bytes*/,
                      std::span<std::byte> /*scratch*/, DecodeSpace& /*space*/) const {}
  /// All units, one after the other.
  void decode_all(const FileBytes& bytes, std::span<std::byte> scratch) const;

  /// Part (or field) number `part` of the sample at `position`: inside `bytes`, inside `scratch`,
  /// or of the data set, and valid as long. Throws corrupt, naming file and offset.
  virtual std::span<const std::byte> part(std::size_t position, std::size_t part,
                                          const FileBytes& bytes,
                                          std::span<const std::byte> scratch) const = 0;
  /// What the sample at `position` is called; as part().
  virtual std::span<const std::byte> key(std::size_t /*position*/,
                                         const FileBytes& /*bytes*/) const {
    return {};
  }
  /// Hands all samples to `sink`, each with its first `parts` parts, in any order: cheaper than
  /// key() and part() of each. Throws as these; IndexMismatch before anything wrong is handed over.
  virtual void unpack(std::size_t parts, const FileBytes& bytes, std::span<const std::byte> scratch,
                      const FoundSink& sink) const;

 protected:
  explicit Plan(std::size_t size) : size_(size) {}

  /// For plans that are often used without: fills in extents_ at the first call. Thread-safe.
  virtual void find_extents() const {}

  mutable std::vector<FileExtent> extents_;
  mutable std::size_t named_ = 0;
  std::uint64_t scratch_bytes_ = 0;

 private:
  std::size_t size_;
};

/// How one part is stored, in words, for inspect.
struct StoredPart {
  std::string how;  ///< "contiguous", "chunks of 16x64x64, deflate 4"
  bool in_place = true;
};

/// What is known of a data set since it was opened.
struct DataSetFacts {
  /// Where a value is before it is delivered.
  enum class Values : std::uint8_t {
    in_file,     ///< as it is delivered
    in_scratch,  ///< as decoding writes it: one part, which has to be decoded
    in_parts,    ///< in several places
  };

  std::string path;    ///< as the user named it
  std::string format;  ///< "hdf5"
  std::uint64_t entries = 0;
  /// Of samples that are fields of fixed sizes; else empty.
  Schema schema = {};
  /// Of samples that are several parts of any size: their names.
  std::vector<std::string> parts = {};
  /// A codec for each part (CodecOptions::codec), where the user says none; empty: auto.
  std::vector<std::string> codecs = {};
  std::vector<StoredPart> stored = {};  ///< a part or field
  std::uint64_t sample_bytes = 0;       ///< of every value; where they differ, the mean
  std::uint64_t value_bytes = 0;        ///< of all values; saturated
  std::uint64_t together = 1;           ///< so many samples are decoded together, at most
  Values values = Values::in_file;
  bool decodes = false;  ///< some parts have to be decoded, or checked
  /// Values in parts are put together behind what they are made of, where that is read to.
  bool parts_stay = false;
  bool named = false;           ///< samples have keys
  bool keys_in_bytes = false;   ///< keys lie in the bytes that are read for samples
  std::uint64_t key_bytes = 0;  ///< of all keys, where they do not
  /// Samples of each of the files; empty where a sample is spread over several.
  std::vector<std::uint64_t> of_files = {};
  /// Identity of the content; one line, the same on every platform.
  std::string fingerprint = {};
  /// Names of what labels number, where the format numbers them.
  std::vector<std::string> labels = {};
  /// What a user has to hear once: what was left out or guessed, and how to change it.
  std::vector<std::string> notes = {};

  /// How many spans Plan::part() tells of a sample.
  std::size_t part_count() const {
    return schema.fields.empty() ? std::max<std::size_t>(1, parts.size()) : schema.fields.size();
  }
};

/// What is wrong with a page of a file, or with a record on it.
struct PageFault {
  std::string database;  ///< the tree or the file that it belongs to
  std::uint64_t page = 0;
  std::uint64_t offset = 0;  ///< of the page in the file
  std::string key;           ///< printable; empty when the fault is not one of a record
  std::string text;
};

/// What a check of all pages has shown.
struct PagesReport {
  bool samples = false;       ///< each sample is a record, and was handed over
  std::uint64_t records = 0;  ///< of the data set
  std::uint64_t pages = 0;
  std::uint64_t free_pages = 0;
  std::uint64_t unreferenced_pages = 0;  ///< not in use and not free; wasted, but no fault
  std::uint64_t fault_count = 0;
  std::vector<PageFault> faults;        ///< the first ones
  std::vector<std::string> notes = {};  ///< what was not checked; no faults

  bool sound() const { return fault_count == 0; }
};

/// The open files of a data set, in the order of its samples.
using DataFiles = std::vector<std::shared_ptr<const File>>;

using ByteSink = std::function<void(std::span<const std::byte>)>;
/// Of the first and last bytes of every file as they are now, and of what `more` hands over.
std::string ends_digest(std::span<const std::shared_ptr<const File>> files,
                        const std::function<void(const ByteSink&)>& more);

/// On one line; bytes that are not UTF-8 (in names of files) are replaced.
std::string json_line(const nlohmann::ordered_json& json);

class DataSet : private NonCopyable {
 public:
  virtual ~DataSet() = default;

  const DataSetFacts& facts() const { return facts_; }
  std::span<const std::shared_ptr<const File>> files() const { return files_; }
  /// The only file, or all of them joined into one (storage/joined_file.hpp): so that one
  /// BulkReader reads from all.
  const std::shared_ptr<const File>& whole() const { return whole_; }
  /// Where `extent` begins in whole().
  std::uint64_t offset_in_whole(const FileExtent& extent) const;
  /// Bytes of all files, or what of them holds samples.
  virtual std::uint64_t stored_bytes() const;
  /// Throws `changed` when a file is not what it was at open, as far as its file system tells:
  /// size, identity, times of writing and of change. Call before delivery.
  void check_unchanged() const;
  /// The same for one of the files.
  virtual void check_unchanged(std::uint32_t file) const;

  /// What `ids` need, in any order and with repeats. Throws usage for an id that does not exist.
  std::unique_ptr<const Plan> plan(std::span<const std::uint64_t> ids) const {
    return plan_runs(runs_of(ids));
  }
  /// The same for samples of which many follow each other.
  virtual std::unique_ptr<const Plan> plan_runs(std::span<const IdRun> runs) const = 0;
  /// Hands over what all samples are called, in order; nothing unless facts().named.
  using KeySink = std::function<void(std::uint64_t id, std::span<const std::byte> key)>;
  virtual void keys(const KeySink& /*sink*/) const {}

  /// Hands over one sample, without an index that would have to be made: for a look at the first
  /// ones, as a walk may lead there. Throws as reading does.
  virtual void read_one(std::uint64_t id, const RecordSink& sink) const;

  // Files that are made of pages, for `inspect` and `verify`. Others have nothing to say here.

  /// What is on them, as one JSON object, in which what is known of values is left open ("codec",
  /// "schema", "fields", "samples", "convention"); empty without pages. Throws as reading does.
  virtual std::string look_at_pages() const { return {}; }
  /// Checks them, and hands each sample that is a record to `sink`, in order; an Error that it
  /// throws is a fault of the record. Keeps `most_faults`. Throws io and changed.
  virtual std::optional<PagesReport> check_pages(std::size_t /*most_faults*/,
                                                 const RecordSink& /*sink*/) const {
    return {};
  }
  /// What reading samples does not check, for `verify`: hands each fault of a file to `sink`.
  /// Throws io and changed.
  virtual void check_files(const std::function<void(const Error&)>& /*sink*/) const {}
  /// Bytes of a value, on average; may read all pages where facts() tells no more than what samples
  /// take in the file.
  virtual double mean_value_bytes() const { return static_cast<double>(facts_.sample_bytes); }

  /// Finds out where samples are, where opening has not: before the first plan, together with all
  /// of `peers`, of which each looks at its part through `reader`, which reads whole().
  virtual void locate(Peers& /*peers*/, BulkReader& /*reader*/) {}
  /// What was said of where samples are was wrong: plans of before are void. Whether anything else
  /// can tell; then the next plan finds out anew, by this process alone. Logs what it gives up.
  virtual bool give_up_index(const Error& /*mismatch*/) const { return false; }
  /// Memory of what tells where samples are, as set aside and as used so far.
  virtual std::uint64_t index_bytes() const { return 0; }
  virtual std::uint64_t used_index_bytes() const { return 0; }
  /// "npy, 3 files", "provenance (table) from a.forebay": how samples are found, in words.
  virtual std::string describe() const;
  /// What is known, as one JSON object: for Samples::info().
  virtual std::string info() const;
  /// Of all plans.
  virtual DecodeCounters counters() const { return {}; }

 protected:
  DataSet(std::string path, std::string format, DataFiles files);

  /// Throws usage for an id that does not exist.
  void require_runs(std::span<const IdRun> runs) const;
  /// Of these runs, one by one; throws the same.
  std::vector<std::uint64_t> ids_of(std::span<const IdRun> runs) const;
  std::uint64_t bytes_at_open(std::uint32_t file) const { return seen_[file].size; }
  static std::string digest_of(std::span<const std::byte> bytes);
  /// As the function below.
  std::string ends_digest(std::span<const std::byte> more) const {
    return forebay::ends_digest(files_, [&](const ByteSink& sink) { sink(more); });
  }

  DataSetFacts facts_;

 private:
  DataFiles files_;
  std::shared_ptr<const File> whole_;
  /// At open; changed_ns and rights, which the mutex guards, as they were seen last.
  mutable std::vector<FileFingerprint> seen_;
  mutable std::mutex seen_mutex_;
};

/// The value of a sample whose parts these are, where it lies in one piece: not Values::in_parts.
std::span<const std::byte> value_in_place(const DataSetFacts& facts,
                                          std::span<const std::span<const std::byte>> parts);
/// Parts that value_in_place() looks at.
inline constexpr std::size_t kPartsInPlace = 1;
/// Bytes of the value that is made of `parts`, and the value itself, which has that many.
std::uint64_t value_bytes(const DataSetFacts& facts,
                          std::span<const std::span<const std::byte>> parts);
void write_value(const DataSetFacts& facts, std::span<const std::span<const std::byte>> parts,
                 std::span<std::byte> out);

}  // namespace forebay
