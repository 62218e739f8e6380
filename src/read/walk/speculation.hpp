// Which pages will a root need, before it knows? (thesis of S. Pumma, section 4.2.2)
//
// At first the size of the first record tells: so many pages a record, times the records before the
// part. From the first part that was read on, the smallest and the largest number of pages a record
// seen so far bound what lies between the last known place and the part that comes:
//
//   known place      parts of other roots         my part
//   |----------------- gap records ---------------|--- count ---|
//                 ^ gap * min                            (gap + count) * max ^
//                 |<------------------- read all of it ------------------->|
//
// Pure figures, no I/O. A wrong guess costs time, never data: what was missed is read later, and
// what was read in vain is counted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "forebay/storage.hpp"

namespace forebay {

struct PageRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t end() const { return first + count; }
  bool operator==(const PageRange&) const = default;
};

/// Pages of a guess against those that were used.
struct SpeculationFigures {
  std::uint64_t guessed = 0;
  std::uint64_t missed = 0;     ///< used and not guessed
  std::uint64_t redundant = 0;  ///< guessed and not used
  bool operator==(const SpeculationFigures&) const = default;
};

/// Pages that a value of `value_bytes` under a key of `key_bytes` takes, with its part of a leaf.
double pages_of_record(std::uint64_t key_bytes, std::uint64_t value_bytes, std::uint32_t page_size);

/// For one root; one thread at a time.
class Speculation {
 public:
  /// The records begin at page `first_page` of a file of `file_pages` pages.
  Speculation(std::uint64_t first_page, std::uint64_t file_pages, double pages_of_first_record);

  /// The pages to read for samples [sample, sample + count). Inside the file.
  PageRange guess(std::uint64_t sample, std::uint64_t count) const;
  /// What samples [sample, sample + count) have used, in any order; ranges do not overlap.
  void learn(std::uint64_t sample, std::uint64_t count, std::span<const PageRange> used);

  double smallest() const { return smallest_; }
  double largest() const { return largest_; }

 private:
  void know(std::uint64_t sample, std::uint64_t page);

  std::uint64_t file_pages_;
  double smallest_;  ///< pages a record
  double largest_;
  bool learnt_ = false;
  std::map<std::uint64_t, std::uint64_t> places_;  ///< sample -> the page where it begins
};

SpeculationFigures compare(const PageRange& guess, std::span<const PageRange> used);

/// Brings pages of `page_size` bytes into memory, in ascending order: one byte of each page of the
/// system is read where `file` is mapped, else the bytes are read and thrown away. Pages behind the
/// end of the file are left out; stops where `give_up` says so. Returns the pages that were read.
/// Throws io, also when the mapping has faulted.
std::uint64_t touch(const File& file, const PageRange& pages, std::uint32_t page_size,
                    const std::function<bool()>& give_up);

}  // namespace forebay
