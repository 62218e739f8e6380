// What the keys of samples have in common, so that others stand out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace forebay::convention {

/// A form that the keys of samples share, so that others stand out. From the narrowest one on:
///
///   integers   4 or 8 bytes, below 2^24 or 2^56, the high byte first or last
///   hashes     hexadecimal digits, of one length, perhaps with '-' at the same places (UUIDs)
///   numbers    the same but for numbers: "17", "-3", "img_0017.jpg", "000_00000012"; any name may
///              follow a number and '_': "00000017_NAME" (Caffe)
///   paths      with a slash, or an extension
///   named      a name and a number: "cat_17", "dog_3"
class KeyForm {
 public:
  /// The forms of `key`, the narrowest one first.
  static std::vector<KeyForm> all_of(std::string_view key);
  bool has(std::string_view key) const;
  bool operator==(const KeyForm&) const = default;

  /// Keys are nothing but digits.
  bool is_plain_number() const { return kind_ == Kind::number && pattern_ == "0"; }
  /// Keys that have it are alike, and no mere likeness of many: one of the first three.
  bool is_narrow() const { return kind_ <= Kind::number; }
  /// Whether all keys between two that have it are likely to have it.
  bool is_together() const { return kind_ == Kind::number; }
  bool is_hash() const { return kind_ == Kind::hash; }
  /// Whether `key` may be that of a sample as well: "val-001" and "cover.jpg" beside "img-001.jpg".
  bool has_sibling(std::string_view key) const;
  /// Keys behind which keys of this form are likely to lie, one after the other.
  std::vector<std::string> places() const;
  /// "numbers", "'img_' and a number".
  std::string text() const;
  /// By how narrow they are.
  bool is_narrower_than(const KeyForm& other) const { return kind_ < other.kind_; }

 private:
  enum class Kind : std::uint8_t { integer, hash, number, path, named };
  KeyForm(Kind kind, std::string pattern) : kind_(kind), pattern_(std::move(pattern)) {}

  Kind kind_;
  /// Of integers, zeros where they have one, else 'x'; of hashes, 'x' for a digit; of numbers, '0'
  /// for each. "0_": any name follows.
  std::string pattern_;
};

}  // namespace forebay::convention
