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
  /// Of samples that were found: each name, or the pattern that it shares with others.
  std::vector<std::string> layout;

  std::string at(std::size_t pattern, std::size_t sample) const;  ///< a name
  bool in_groups() const;                                         ///< each sample is a group
};

/// The samples that `patterns`, each with a '*' or "*/*", make of `names`: by name, numbers in
/// names by what they are.
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
};
struct Layout {
  std::optional<NamedSamples> samples;  ///< nothing: rows
  std::vector<std::string> notes;       ///< what was taken for what
};
/// Throws usage where it is not clear, with each way to say it, and corrupt where a sample lacks
/// what others have.
Layout judge_layout(const LayoutCase& of);
/// The latter alone.
void require_whole(const NamedSamples& samples, const std::string& path, const std::string& links);

/// In a message.
std::string some_of(std::span<const std::string> names);

}  // namespace forebay::hdf5
