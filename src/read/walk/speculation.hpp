// Which pages will a root need, before it knows? (thesis of S. Pumma, section 4.2.2)
//
// The thesis bounds where the next part of a root lies by the smallest and the largest number of
// pages that a part has had so far, and touches all that is between the two bounds. Parts of all
// other roots lie in the gap before it, so what a bound is wrong by counts once for each of them;
// and pages are a poor measure, as leaves, branch pages and what older transactions have freed lie
// between the values. Here bounds are those of records a leaf, and leaves are counted in key order,
// as branch pages list them, wherever they lie in the file:
//
//   last known record     parts of other roots       my part
//   | leaf | leaf | leaf | leaf | leaf | leaf | leaf | leaf | leaf |
//      |<------------- gap records ------------->|<- count ->|
//           gap / most records a leaf ^             ^ (gap + count) / fewest records a leaf
//                                     |<- touched ->|   these leaves, and the values they tell of
//
// At first the first leaf tells how many records a leaf holds; from then on, each gap has a mean.
// Its bounds are those of the last few gaps: they grow with what is uneven, and shrink again. Where
// records are laid out evenly, they are one number, and all pages are found, and no others.
//
// Branch pages are read on the way, one for some hundred leaves of the gap. Every root soon has
// them in memory; they are no part of the guess, neither missed nor redundant.
//
// A wrong guess costs time, never data: what was missed is read later, and what was read in vain is
// counted.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "forebay/storage.hpp"
#include "format/lmdb/database.hpp"

namespace forebay {

struct PageRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t end() const { return first + count; }
  bool operator==(const PageRange&) const = default;
};

/// The same pages in ascending order, each once.
std::vector<PageRange> joined(std::vector<PageRange> ranges);

/// Pages of a guess against those that were used.
struct SpeculationFigures {
  std::uint64_t guessed = 0;
  std::uint64_t missed = 0;     ///< used and not guessed
  std::uint64_t redundant = 0;  ///< guessed and not used
  bool operator==(const SpeculationFigures&) const = default;
};

/// Both as joined() returns them.
SpeculationFigures compare(std::span<const PageRange> guess, std::span<const PageRange> used);

/// In any order; pages may be there twice.
struct GuessedPages {
  std::vector<PageRange> leaves;  ///< were looked at: they are in memory
  std::vector<PageRange> values;  ///< overflow runs, inside the file: still to be touched
};

/// For one root; one thread at a time.
class Speculation {
 public:
  /// `database` outlives this object. Looks at the first leaf.
  explicit Speculation(lmdb::Database& database);

  /// Adds the pages that samples [sample, sample + count) probably lie on, and the leaf of the
  /// record behind them, where the walk ends. Throws io, changed; ends early at a page that is
  /// damaged, which is for the walk to tell, should it come there.
  void guess(std::uint64_t sample, std::uint64_t count, GuessedPages& pages);
  /// The part that was guessed last begins at `start` and ends with `last`: records whose numbers
  /// are known.
  void learn(const lmdb::Cursor& start, const lmdb::Cursor& last);

  /// Records a leaf.
  double fewest() const { return fewest_; }
  double most() const { return most_; }

 private:
  const lmdb::Cursor& known_before(std::uint64_t sample) const;
  void add_leaf(const lmdb::Cursor& cursor, std::uint64_t from, std::uint64_t to,
                GuessedPages& pages);

  lmdb::Database& database_;
  lmdb::Cursor first_;        ///< the first record
  lmdb::Cursor known_;        ///< the last one of the part before
  std::deque<double> means_;  ///< of the last gaps
  double fewest_ = 1;
  double most_ = 1;
};

/// Brings pages of `page_size` bytes into memory, in ascending order: one byte of each page of the
/// system is read where `file` is mapped, else the bytes are read and thrown away. Pages behind the
/// end of the file are left out; stops where `give_up` says so. Returns the pages that were read.
/// Throws io, also when the mapping has faulted.
std::uint64_t touch(const File& file, const PageRange& pages, std::uint32_t page_size,
                    const std::function<bool()>& give_up);

}  // namespace forebay
