// Samples whose parts are stretches of files, of any size: members of archives, files in folders.
//
//   samples   0                     1                     2 ...
//   parts     jpg: file 0, 512..    jpg: file 0, 9216..   ...      Member: where its bytes are
//             cls: file 0, 8704..   cls: file 0, 17920..
//
// Parts that no file holds (labels out of names) are in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/data_set.hpp"
#include "format/dataset_files.hpp"

namespace forebay {

/// The stored bytes of one part of one sample.
struct Member {
  /// Instead of a file: the part is in memory, MemberIndex::memory.
  static constexpr std::uint32_t kInMemory = UINT32_MAX;

  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  ///< in the file
  std::uint32_t file = 0;   ///< of the data set's files
};

/// All samples of a data set, and their parts.
struct MemberIndex {
  std::vector<std::string> parts;       ///< names; at least one
  std::vector<std::string> codecs;      ///< DataSetFacts::codecs
  std::vector<Member> members;          ///< a part, sample by sample
  std::vector<std::uint64_t> keys_end;  ///< of each sample's key in `keys`
  std::string keys;
  std::string memory;                   ///< of parts that no file holds
  std::vector<std::uint64_t> of_files;  ///< samples of each file; empty where they are not by file
  std::vector<std::string> notes;       ///< DataSetFacts::notes
  std::vector<std::string> labels;      ///< DataSetFacts::labels
  bool whole_files = false;  ///< members are whole files, as long as those: none is read at open

  std::uint64_t entries() const { return keys_end.size(); }
  std::string_view key(std::uint64_t sample) const {
    const std::uint64_t begin = sample == 0 ? 0 : keys_end[sample - 1];
    return std::string_view(keys).substr(begin, keys_end[sample] - begin);
  }
};

/// What a walk over files has found, before it is known which parts samples have.
class FoundMembers {
 public:
  /// Goes on with a sample of that name; parts that follow are its own.
  void begin_sample(std::string_view key);
  /// Throws corrupt when the sample has that part already.
  void add(std::string_view part, const Member& member);
  /// A part whose bytes are `content`: a number as text.
  void add_in_memory(std::string_view part, std::string_view content);
  /// Samples begun since the last call belong to one more file.
  void end_file();
  /// For DataSetFacts::notes, of which a few are enough.
  void note(std::string text);
  /// See MemberIndex.
  void set_labels(std::vector<std::string> labels) { found_.labels = std::move(labels); }
  void set_whole_files() { found_.whole_files = true; }
  std::uint64_t samples() const { return found_.keys_end.size(); }

  /// Keeps the parts that were chosen, under the names that the choices give; without choices those
  /// that every sample has, and notes which others are left out. `text` names the data set. Throws
  /// not_found for a choice that no sample has, corrupt for a sample that has it not, usage where
  /// there is no common part.
  MemberIndex choose(std::span<const FieldChoice> choices, const std::string& text) &&;

 private:
  struct Found {
    std::uint64_t sample = 0;
    std::size_t part = 0;
    Member member;
  };
  std::size_t part_number(std::string_view name);
  std::vector<std::size_t> common_parts(const std::string& text);
  std::size_t chosen_part(const FieldChoice& choice, const std::string& text) const;

  MemberIndex found_;  ///< keys, and content in memory
  std::vector<Found> members_;
  std::vector<std::string> names_;     ///< of parts, in the order of their appearance
  std::vector<std::uint64_t> counts_;  ///< samples that have them
  std::unordered_map<std::string, std::size_t> numbers_;
  std::set<std::size_t> in_memory_;  ///< parts
  std::uint64_t first_of_file_ = 0;
};

class MemberSet final : public DataSet {
 public:
  /// Throws corrupt when a member does not lie in its file.
  MemberSet(std::string path, std::string format, DataFiles files, MemberIndex index);

  std::unique_ptr<const Plan> plan(std::span<const std::uint64_t> ids) const override;
  std::span<const std::byte> key(std::uint64_t id) const override {
    return std::as_bytes(std::span(index_.key(id)));
  }

 private:
  friend class MemberPlan;

  std::string digest_of_content() const;
  void require_inside() const;
  void tell_parts();

  MemberIndex index_;
};

/// The part that a file or member name stands for: what comes behind the first '.' of its last
/// component, in small letters, as WebDataset has it; and the sample: what comes before.
struct MemberName {
  std::string_view sample;
  std::string part;
};
/// Nothing for names without an extension, and those that begin with one.
std::optional<MemberName> split_member_name(std::string_view name);

}  // namespace forebay
