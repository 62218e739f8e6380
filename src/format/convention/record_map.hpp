// Which record of a data set is sample i: stretches of records that follow each other where that
// is shorter, else one number a sample.
//
//   samples   0 ...... 4 | 5 6 | 7 ........ 20        runs: 16 bytes each
//   records   8 ..... 12 | 2 3 | 30 ....... 43
//
// Records are numbered over all databases of a data set.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace forebay::convention {

class RecordMap {
 public:
  /// Samples from `sample` on, up to the next run, are records from `record` on.
  struct Run {
    std::uint64_t sample = 0;
    std::uint64_t record = 0;
    bool operator==(const Run&) const = default;
  };

  RecordMap() = default;
  /// Samples are records `first` to `first` + `count` - 1.
  static RecordMap of_range(std::uint64_t first, std::uint64_t count);

  void add(std::uint64_t record) { add_range(record, 1); }
  void add_range(std::uint64_t first, std::uint64_t count);
  /// Appends what `other` has, its records `shift` further on.
  void append(const RecordMap& other, std::uint64_t shift);
  /// Takes the shorter form. Before the first look-up, and not changed after it.
  void finish();

  std::uint64_t samples() const { return samples_; }
  std::uint64_t record(std::uint64_t sample) const;
  /// Whether samples are records 0, 1, 2 ... of `records`.
  bool is_plain(std::uint64_t records) const;
  std::uint64_t memory_bytes() const;
  /// Of all numbers; the same for both forms.
  std::uint64_t digest() const;

  /// Calls use(first record, count) for stretches of samples [first, first + count), in order.
  template <typename Use>
  void for_each_run(std::uint64_t first, std::uint64_t count, Use&& use) const {
    while (count > 0) {
      const Stretch stretch = stretch_at(first, count);
      use(stretch.record, stretch.count);
      first += stretch.count;
      count -= stretch.count;
    }
  }

 private:
  struct Stretch {
    std::uint64_t record = 0;
    std::uint64_t count = 0;
  };
  Stretch stretch_at(std::uint64_t sample, std::uint64_t most) const;

  std::uint64_t samples_ = 0;
  std::vector<Run> runs_;
  std::vector<std::uint64_t> records_;  ///< of each sample, when that is shorter
};

}  // namespace forebay::convention
