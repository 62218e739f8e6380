// What a user may write behind the '#' where it is not clear what the data sets of a file are:
// ways that have been tried, and no others.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "format/hdf5/layout.hpp"

namespace forebay::hdf5 {

/// `choices` stand behind the '#'; empty: there is no way to say it.
struct Way {
  std::string choices;
  std::string what;  ///< is said so
};

/// Ways to say what is meant of the file of a case; empty where they cannot be read.
class Ways {
 public:
  explicit Ways(const LayoutCase& of) : of_(of) {}

  /// As it stands in a message, with the file before it.
  std::string shown(const std::string& choices) const { return of_.path + "#" + choices; }
  /// These names or patterns.
  std::string named(std::span<const std::string> names) const;
  /// Each sample has data sets of its own; perhaps with what has a row for each beside them.
  std::string each_a_sample(const NamedSamples& found) const;
  std::string rows_of_one(const NamedSamples& found) const;
  std::string rows_of_each(const NamedSamples& found) const;
  /// All rows of the file, or of the group.
  std::string rows_of_all() const;
  /// One of several that are alike. Not tried: a group may have to be told more of.
  std::string one_of(const Twin& twin) const;
  /// The samples of all groups, where these hold samples.
  std::string samples_of_all(const Alike& alike) const;
  /// All as fields of one sample, `rows`: of each row.
  std::string fields_of_all(const Alike& alike, bool rows) const;

  /// What belongs to no sample and has a row for each.
  std::vector<std::string> beside(const NamedSamples& found) const;
  /// Whether these samples are what their patterns mean, with `beside` named beside them.
  bool are_meant(const NamedSamples& found, std::span<const std::string> beside) const;

  /// Throws usage: `what` is unclear.
  [[noreturn]] void refuse(const std::string& what, std::initializer_list<Way> ways) const;

 private:
  std::string if_read(const std::string& choices) const;

  const LayoutCase& of_;
};

}  // namespace forebay::hdf5
