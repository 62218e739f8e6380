// Samples whose parts are stretches of files, of any size: members of archives, files in folders.
//
//   samples   0                     1                     2 ...
//   parts     jpg: file 0, 512..    jpg: file 0, 9216..   ...      Member: where its bytes are
//             cls: file 0, 8704..   cls: file 0, 17920..
//
// Parts that no file holds (labels out of names) are in memory. Where members are not the parts
// themselves, a MemberCoding makes parts of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/data_set.hpp"
#include "format/dataset_files.hpp"
#include "format/member_table.hpp"

namespace forebay {

/// Members claim any size: their sum ends at the largest number.
inline void add_saturated(std::uint64_t& sum, std::uint64_t bytes) {
  sum += std::min(bytes, UINT64_MAX - sum);
}

/// How members hold parts. Immutable, safe to use from many threads at once.
class MemberCoding {
 public:
  virtual ~MemberCoding() = default;
  virtual std::string how() const = 0;  ///< StoredPart::how
  /// Where in `stored`, all of the member, the part lies, or begins to be coded. Throws corrupt.
  virtual std::span<const std::byte> content(std::span<const std::byte> stored,
                                             const CodedPart& part) const = 0;
  /// Decodes `stored` into `out`, which is as large as the part, or is empty where that lies in
  /// place; and checks the part. Throws corrupt.
  virtual void decode(std::span<const std::byte> stored, const FoundPart& part,
                      std::span<std::byte> out) const = 0;
};

/// All samples of a data set, and what was found of their parts.
struct MemberIndex {
  /// Of all members of one name.
  struct Part {
    std::string name;
    std::uint64_t samples = 0;    ///< that have it
    std::uint64_t bytes = 0;      ///< of the parts, not as they are stored; saturated
    std::uint64_t in_memory = 0;  ///< samples
    std::uint64_t coded = 0;      ///< samples where it does not lie in place
    bool images = false;          ///< all are of files that are called as images are
  };
  MemberTable table;
  std::vector<Part> found;
  std::vector<std::uint64_t> ends;  ///< of the last member of each file
  std::string memory;               ///< of parts that no file holds
  std::uint64_t key_bytes = 0;
  std::vector<std::uint64_t> of_files;   ///< samples of each file; empty where they are not by file
  std::vector<std::string> notes;        ///< DataSetFacts::notes
  std::vector<std::string> labels;       ///< DataSetFacts::labels
  bool whole_files = false;              ///< members are whole files: their sizes are asked for
  const MemberCoding* coding = nullptr;  ///< lives as long as the process
  std::string digest = {};               ///< of names and ends of files, where that is known

  // What was chosen of it.
  std::vector<std::uint32_t> chosen;  ///< numbers of parts
  std::vector<std::string> parts;     ///< names; at least one
  std::vector<std::string> codecs;    ///< DataSetFacts::codecs

  std::uint64_t entries() const { return table.samples(); }
};

class FoundMembers;

/// Members that are no data, for a note.
class LeftOutMembers {
 public:
  /// True, for conditions.
  bool add(std::string_view name);
  /// `text` has '{}' for their number, and for the first.
  void tell(const char* text, FoundMembers& found) const;

 private:
  std::uint64_t count_ = 0;
  std::string first_;
};

/// What a walk over files has found, before it is known which parts samples have.
class FoundMembers {
 public:
  /// Goes on with a sample of that name; parts that follow are its own.
  void begin_sample(std::string_view key);
  /// Throws corrupt when the sample has that part already.
  void add(std::string_view part, const Member& member, const CodedPart& coded = {});
  /// A part whose bytes are `content`: a number as text.
  void add_in_memory(std::string_view part, std::string_view content);
  /// Samples begun since the last call belong to one more file.
  void end_file();
  /// For DataSetFacts::notes, of which a few are enough.
  void note(std::string text);
  /// See MemberIndex.
  void set_labels(std::vector<std::string> labels) { found_.labels = std::move(labels); }
  void set_whole_files() { found_.whole_files = true; }
  void set_images(std::string_view part) { found_.found[part_number(part)].images = true; }
  /// Before the first sample.
  void set_coding(const MemberCoding* coding);
  /// Works it out: of names and of the ends of `files`.
  void set_digest(std::span<const std::shared_ptr<const File>> files);
  std::uint64_t samples() const { return found_.entries(); }

  /// What others have found in the files behind those of this one.
  void append(const FoundMembers& others);
  /// All of it but labels, coding and what is in memory, which walks do not find.
  void write(ByteWriter& out) const;
  /// Throws corrupt for bytes that are none of `files` files.
  static FoundMembers read(ByteReader& in, std::uint64_t files);

  /// Throws not_found where there is no sample, as folders without one do; says what was left out.
  void require_samples(const std::string& text) const;
  /// Keeps the parts that were chosen, under the names that the choices give; without choices those
  /// that every sample has, and notes which others are left out. `text` names the data set. Throws
  /// not_found for a choice that no sample has, corrupt for a sample that has it not, usage where
  /// there is no common part.
  MemberIndex choose(std::span<const FieldChoice> choices, const std::string& text) &&;

 private:
  std::uint32_t part_number(std::string_view name);
  std::vector<std::uint32_t> common_parts(const std::string& text);
  std::uint32_t chosen_part(const FieldChoice& choice, const std::string& text) const;

  MemberIndex found_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  ///< of parts
  std::string key_;                                         ///< of the sample that was begun last
  std::vector<std::uint32_t> has_;                          ///< its parts
  std::uint64_t first_of_file_ = 0;
};

class MemberSet final : public DataSet {
 public:
  /// Throws corrupt when a member does not lie in its file.
  MemberSet(std::string path, std::string format, DataFiles files, MemberIndex index);

  std::unique_ptr<const Plan> plan_runs(std::span<const IdRun> runs) const override;
  void keys(const KeySink& sink) const override;
  DecodeCounters counters() const override {
    return {.chunks = decoded_.load(std::memory_order_relaxed),
            .bytes_decoded = bytes_decoded_.load(std::memory_order_relaxed)};
  }

 private:
  friend class MemberPlan;

  std::string digest_of_sizes() const;
  void require_inside() const;
  [[noreturn]] void refuse(std::uint64_t sample, const std::string& key,
                           const FoundPart& part) const;
  /// The chosen parts of a row, which is of `sample`. Throws corrupt.
  void take(const MemberRow& row, std::uint64_t sample, std::span<FoundPart> out) const;
  void tell_parts();

  MemberIndex index_;
  mutable std::atomic<std::uint64_t> decoded_ = 0;
  mutable std::atomic<std::uint64_t> bytes_decoded_ = 0;
};

/// The part that a file or member name stands for: what comes behind the first '.' of its last
/// component, in small letters, as WebDataset has it; and the sample: what comes before.
struct MemberName {
  std::string_view sample;
  std::string part;
};
/// Nothing for names without an extension, and those that begin with one.
std::optional<MemberName> split_member_name(std::string_view name);
/// Whether its extension is one of torchvision's ImageFolder, or GIF's.
bool is_image_name(std::string_view name);
/// Whether macOS, Windows or Jupyter leave files or folders of that name behind.
bool is_left_behind(std::string_view name);
/// Whether a file or folder of that name is no data: left behind so, or hidden.
bool is_no_data(std::string_view name);
/// Whether a member, or a folder on the way to it, is none.
bool is_hidden_member(std::string_view path);

}  // namespace forebay
