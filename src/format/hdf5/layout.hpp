// Whether samples are rows of the data sets of a file, or have data sets of their own: told by
// names and shapes, and refused where these leave it open. Never is an axis taken for samples, or a
// name, where it may be otherwise, and never without a word.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/hdf5/driver.hpp"
#include "format/repeated_names.hpp"

namespace forebay::hdf5 {

// Data sets of which each sample has its own.
//
//   0001/image 0001/label 0002/image ...    "*/image", "*/label": '*' stands for what tells samples
//   img_0 img_1 ...                         "img_*"                apart, inside of a step of a
//   cat/000 cat/001 dog/000 ...             "*/*"                  path, or over some whole steps

struct NamedSamples {
  std::vector<std::string> patterns;
  std::vector<std::string> keys;    ///< what '*' stands for, in the order of samples
  std::vector<std::string> others;  ///< names that belong to no sample
  std::string lacking;              ///< which sample has not what others have, if one has not
  std::vector<std::string> whole;   ///< patterns that all samples have

  // Of samples that were found.
  std::vector<std::string> layout;  ///< each name, or the pattern that it shares with others
  /// Where names differ in several numbers of a step, of which none alone tells them apart: a
  /// pattern for each value of the others, "case00_slice*" and "case01_slice*".
  std::vector<std::string> by_single_numbers;

  std::string at(std::size_t pattern, std::size_t sample) const;  ///< a name
  bool in_groups() const;                                         ///< each sample is a group
};

/// The samples that `patterns`, each with a '*' or "*/*", make of `names`: in the order of names,
/// numbers in these by what they are. A name belongs to the longest pattern that it matches.
/// Throws not_found for a pattern of nothing.
NamedSamples match_samples(std::span<const std::string> names, std::vector<std::string> patterns);
/// Those that names alone suggest.
std::optional<NamedSamples> find_samples(std::span<const std::string> names);

// The judgement.

/// What is asked of the names of a file.
struct LayoutCase {
  std::string path;                    ///< of the file
  std::string group;                   ///< as find_alike() has it
  std::span<const std::string> names;  ///< of data sets
  std::string links;                   ///< what is left out where samples have their own, in words
  std::function<Id(const std::string& name)> open;
  /// Whether what may stand behind the '#' can be read.
  std::function<bool(const std::string& choices)> reads;
};
struct Layout {
  std::optional<NamedSamples> samples;  ///< nothing: rows
  std::vector<std::string> notes;       ///< what was taken for what
};
/// Throws usage where it is not clear, with each way to say it that can be read, and corrupt where
/// a sample lacks what others have.
Layout judge_layout(const LayoutCase& of);
/// The latter alone. `rows` names all data sets, if these may be rows.
void require_whole(const NamedSamples& samples, const std::string& path, const std::string& links,
                   const std::string& rows = {});

/// In a message.
std::string some_of(std::span<const std::string> names);

}  // namespace forebay::hdf5
