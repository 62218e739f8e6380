// What is known of the keys of a tree, to tell each leaf from all others.
//
// Without this a leaf could be mistaken for another one that looks alike: leaves of small records
// of one size all do, and so do the older copies of a leaf that writing leaves behind in the file.
//
//   rule     the keys count: each begins with its record's number in decimal digits, or is that
//            number as an integer. Costs nothing and decides on its own, whatever the leaf's page.
//   digests  four bytes a leaf, of its first key, its page and the number of its first sample:
//            digest = low half of XXH3(first key, seed = page) + 0x9E3779B1 * sample, modulo 2^32
//
// A digest is a sum so that the facts of a part of the leaves, numbered from its own start, become
// those of the whole when the part's place is known.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/byte_stream.hpp"
#include "format/lmdb/leaf_producer.hpp"

namespace forebay::lmdb {

/// key number = base + sample, modulo 2^64.
struct KeyRule {
  enum class Kind : std::uint8_t { none, decimal, integer };

  Kind kind = Kind::none;
  std::uint32_t width = 0;  ///< decimal: how many digits each key begins with; integer: bytes
  std::uint64_t base = 0;

  bool holds(std::span<const std::byte> key, std::uint64_t sample) const;
  bool operator==(const KeyRule&) const = default;
};

class KeyFacts final : public KeyWitness {
 public:
  std::string contradicts(const LeafKeys& keys, std::uint32_t records) const override;

  const KeyRule& rule() const { return rule_; }
  /// Whether there is anything that a leaf could contradict.
  bool known() const { return rule_.kind != KeyRule::Kind::none || has_digests(); }
  bool has_digests() const { return !digests_.empty(); }
  std::uint64_t memory_bytes() const { return digests_.capacity() * sizeof(std::uint32_t); }
  /// Leaves that could be mistaken stay distinguishable by the rule alone. Does nothing without it.
  void drop_digests();

  /// Appends the facts of the leaves that follow, numbered from 0 while they start at
  /// `first_sample`.
  void append(const KeyFacts& part, std::uint64_t first_sample);

  void write(ByteWriter& out) const;
  /// `leaves`: how many there are digests of, if any. Throws corrupt.
  static KeyFacts read(ByteReader& in, std::uint64_t leaves);

 private:
  friend class KeyFactsBuilder;

  KeyRule rule_;
  std::vector<std::uint32_t> digests_;
};

/// Finds the facts from the leaves in key order.
class KeyFactsBuilder {
 public:
  explicit KeyFactsBuilder(std::uint16_t tree_flags) : tree_flags_(tree_flags) {}
  void add(const LeafKeys& keys, std::uint32_t records);
  KeyFacts take() { return std::move(facts_); }

 private:
  std::uint16_t tree_flags_;
  KeyFacts facts_;
};

}  // namespace forebay::lmdb
