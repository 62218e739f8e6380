#include "format/lmdb/provenance/key_facts.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include "forebay/error.hpp"

namespace forebay::lmdb {
namespace {

constexpr std::uint32_t kMostDigits = 19;  ///< of a number below 2^63
constexpr std::uint32_t kPerSample = 0x9E3779B1U;

std::uint32_t digest(std::span<const std::byte> key, PageNumber page, std::uint64_t sample) {
  const auto of_key =
      static_cast<std::uint32_t>(XXH3_64bits_withSeed(key.data(), key.size(), page));
  return of_key + kPerSample * static_cast<std::uint32_t>(sample);
}

std::uint32_t leading_digits(std::span<const std::byte> key) {
  std::uint32_t count = 0;
  while (count < key.size() && count <= kMostDigits && key[count] >= std::byte{'0'} &&
         key[count] <= std::byte{'9'}) {
    ++count;
  }
  return count;
}

/// The number that `key` begins with by `rule`, if it has one.
std::optional<std::uint64_t> number_of(std::span<const std::byte> key, const KeyRule& rule) {
  if (rule.kind == KeyRule::Kind::integer) {
    if (key.size() != rule.width) return {};
    if (rule.width == 4) return load<std::uint32_t>(key, 0);
    return load<std::uint64_t>(key, 0);
  }
  if (key.size() < rule.width) return {};
  std::uint64_t number = 0;
  for (const std::byte byte : key.first(rule.width)) {
    if (byte < std::byte{'0'} || byte > std::byte{'9'}) return {};
    number = number * 10 + (std::to_integer<std::uint64_t>(byte) - '0');
  }
  return number;
}

/// The rule that the first key of all suggests.
KeyRule guess(std::span<const std::byte> key, std::uint16_t tree_flags, std::uint64_t sample) {
  KeyRule rule;
  if ((tree_flags & kTreeIntegerKey) != 0) {
    if (key.size() != 4 && key.size() != 8) return {};
    rule = {.kind = KeyRule::Kind::integer, .width = static_cast<std::uint32_t>(key.size())};
  } else {
    const std::uint32_t digits = leading_digits(key);
    if (digits == 0 || digits > kMostDigits) return {};
    rule = {.kind = KeyRule::Kind::decimal, .width = digits};
  }
  rule.base = number_of(key, rule).value_or(0) - sample;
  return rule;
}

}  // namespace

bool KeyRule::holds(std::span<const std::byte> key, std::uint64_t sample) const {
  return number_of(key, *this) == base + sample;
}

std::string KeyFacts::contradicts(const LeafKeys& keys, std::uint32_t records) const {
  if (rule_.kind != KeyRule::Kind::none &&
      (!rule_.holds(keys.first, keys.first_sample) ||
       !rule_.holds(keys.last, keys.first_sample + records - 1))) {
    return fmt::format("its keys are not those of samples {} to {}", keys.first_sample,
                       keys.first_sample + records - 1);
  }
  if (has_digests() && (keys.leaf >= digests_.size() ||
                        digests_[keys.leaf] != digest(keys.first, keys.page, keys.first_sample))) {
    return fmt::format("it is not the leaf that begins with sample {}", keys.first_sample);
  }
  return {};
}

void KeyFacts::drop_digests() {
  if (rule_.kind != KeyRule::Kind::none) digests_ = {};
}

void KeyFacts::append(const KeyFacts& part, std::uint64_t first_sample) {
  KeyRule rule = part.rule_;
  rule.base -= first_sample;
  if (first_sample == 0) rule_ = rule;
  if (rule.kind == KeyRule::Kind::none || rule != rule_) rule_ = {};
  const std::uint32_t shift = kPerSample * static_cast<std::uint32_t>(first_sample);
  for (const std::uint32_t one : part.digests_) digests_.push_back(one + shift);
}

void KeyFacts::write(ByteWriter& out) const {
  out.number(static_cast<std::uint8_t>(rule_.kind));
  out.varint(rule_.width);
  out.number(rule_.base);
  out.number(static_cast<std::uint8_t>(has_digests()));
  out.raw(std::as_bytes(std::span(digests_)));
}

KeyFacts KeyFacts::read(ByteReader& in, std::uint64_t leaves) {
  KeyFacts facts;
  const auto kind = in.number<std::uint8_t>();
  facts.rule_.kind = static_cast<KeyRule::Kind>(kind);
  facts.rule_.width = static_cast<std::uint32_t>(in.varint(kMostDigits));
  facts.rule_.base = in.number<std::uint64_t>();
  const std::uint32_t width = facts.rule_.width;
  const bool known =
      kind == 0 || (kind == 1 && width > 0) || (kind == 2 && (width == 4 || width == 8));
  if (!known) throw Error(ErrorKind::corrupt, "its rule of keys is unknown");
  if (in.number<std::uint8_t>() == 0) return facts;
  if (leaves > in.rest().size() / sizeof(std::uint32_t)) {
    throw Error(ErrorKind::corrupt, "it has fewer digests than leaves");
  }
  facts.digests_.resize(leaves);
  const auto bytes = in.raw(leaves * sizeof(std::uint32_t));
  if (!bytes.empty()) std::memcpy(facts.digests_.data(), bytes.data(), bytes.size());
  return facts;
}

void KeyFactsBuilder::add(const LeafKeys& keys, std::uint32_t records) {
  KeyRule& rule = facts_.rule_;
  if (facts_.digests_.empty()) rule = guess(keys.first, tree_flags_, keys.first_sample);
  if (!rule.holds(keys.first, keys.first_sample) ||
      !rule.holds(keys.last, keys.first_sample + records - 1)) {
    rule = {};
  }
  facts_.digests_.push_back(digest(keys.first, keys.page, keys.first_sample));
}

}  // namespace forebay::lmdb
