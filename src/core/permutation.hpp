// A random-looking permutation of 0..N-1 that is evaluated number by number, in O(1) memory: a
// keyed Feistel network with cycle walking (Black and Rogaway, "Ciphers with arbitrary finite
// domains", 2002).
//
//   number = left * B + right      left below A, right below B, A * B the least that covers N
//
// with A near the root of N and even. A round adds a keyed hash of one half to the other, modulo A
// or B: whatever the hash, that can be undone. Numbers from N to A * B - 1 are walked over: the
// network is applied again until it comes back below N, which it must, being a bijection. Fewer
// than one number in A is walked over, so one pass is nearly always enough. (A is even so that
// single rounds can be odd permutations; else only half of all permutations were possible.)
//
// Integer arithmetic only: every platform has the same permutation. The key is no secret; this is
// no cipher.
#pragma once

#include <cstdint>
#include <span>

namespace forebay {

/// Small value; immutable; all methods are O(1) a number and safe from any thread.
class Permutation {
 public:
  static constexpr std::uint64_t kMostSize = std::uint64_t{1} << 48;

  /// Of 0..size-1, 1 <= size <= kMostSize (the caller has checked); each key has its own.
  Permutation(std::uint64_t size, std::uint64_t key);

  std::uint64_t size() const { return size_; }
  /// Where `number` (below size) goes.
  std::uint64_t operator()(std::uint64_t number) const;
  /// Where the numbers from `first` on go, one for each place of `to`: several at a time, in less
  /// than half of the time. All are below size.
  void images(std::uint64_t first, std::span<std::uint64_t> to) const;
  /// What goes to `number`.
  std::uint64_t inverse(std::uint64_t number) const;

 private:
  std::uint64_t forth(std::uint64_t number) const;
  std::uint64_t back(std::uint64_t number) const;

  std::uint64_t size_;
  std::uint64_t key_;
  std::uint64_t lefts_;   ///< A
  std::uint64_t rights_;  ///< B
  unsigned rounds_;
};

}  // namespace forebay
