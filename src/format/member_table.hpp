// Which parts samples have and where their bytes are, in a few bytes a part: as a walk finds them,
// as they are looked up, and as they are kept in the user's cache (kept_members.hpp).
//
//   sample   0, bytes that its name shares with the one before, the rest of its name
//   part     its number and kind, its file where that is another one, its offset from the end of
//            the part before it, its bytes, and how it is coded where some are
//   block    4 samples; its first one says nothing by what came before
//
//   | 0 0 name part part | 0 4 me part part | ...  | 0 0 name part part | ...
//   ^ begins_[0]                                   ^ begins_[1]
//
// So a sample is found by its block and, in the mean, two samples before it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/byte_stream.hpp"

namespace forebay {

/// The stored bytes of one part of one sample.
struct Member {
  /// Instead of a file: the part is in memory, MemberIndex::memory.
  static constexpr std::uint32_t kInMemory = UINT32_MAX;

  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;     ///< in the file
  std::uint32_t file = 0;      ///< of the data set's files
  std::uint32_t checksum = 0;  ///< for MemberCoding
};

/// The part that a member is the coded form of.
struct CodedPart {
  std::uint64_t bytes = 0;
  bool in_place = false;  ///< it lies inside of the member
};

struct FoundPart {
  std::uint32_t part = 0;  ///< number of its name
  Member member = {};
  CodedPart coded = {};
};

/// A sample as it was found.
struct MemberRow {
  std::string key;
  std::vector<FoundPart> parts;
};

class MemberTable {
 public:
  /// `coded`: whether parts have checksums and CodedPart.
  explicit MemberTable(bool coded = false) : coded_(coded) {}

  void begin_sample(std::string_view key);
  /// To the sample that was begun last.
  void add(const FoundPart& part);
  std::uint64_t samples() const { return samples_; }

  /// Without coded parts.
  void write(ByteWriter& out) const;
  /// Throws corrupt for bytes that no table can be; what they say is checked when it is looked up.
  static MemberTable read(ByteReader& in);

 private:
  friend class MemberRows;
  static constexpr std::uint64_t kBlock = 4;
  /// What the next part is measured from.
  struct Place {
    std::uint64_t end = 0;
    std::uint32_t file = 0;
  };
  enum Kind : std::uint32_t { same_file, next_file, other_file, in_memory };

  bool coded_;
  std::uint64_t samples_ = 0;
  std::vector<std::uint64_t> begins_;  ///< of blocks
  ByteWriter blocks_;
  std::string last_key_;
  Place last_;
};

/// Looks up samples of a table that does not change meanwhile: cheapest one after the other. One
/// thread.
class MemberRows {
 public:
  explicit MemberRows(const MemberTable& table) : table_(table) {}
  /// Valid until the next call. Throws corrupt, for a table that was read.
  const MemberRow& at(std::uint64_t sample);

 private:
  void go_to(std::uint64_t block);
  void read_sample();
  void read_part(std::uint64_t code);

  const MemberTable& table_;
  std::uint64_t next_ = 0;
  std::uint64_t end_ = 0;  ///< first sample that is not of this block
  ByteReader rest_{{}};    ///< of the block
  MemberTable::Place last_;
  MemberRow row_;
};

}  // namespace forebay
