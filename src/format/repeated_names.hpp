// Names of data sets that are repeated, as those of splits and classes are, and lists of names as
// they stand behind the '#' of a data set's text.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace forebay {

/// The place of the '*' or "*/*" of a pattern; nothing where `text` is no pattern.
struct Stars {
  std::size_t begin = 0;
  std::size_t end = 0;
};
std::optional<Stars> stars_of(const std::string& text);

// What would be taken for fields of one sample, although names are repeated:
//
//   train/x train/y test/x test/y    images/train images/test    x_train x_test    splits
//   cat/000 cat/001 dog/000 ...      left/image left/pose right/image right/pose   groups
//
// A '*' stands for what tells samples apart that have data sets of their own: "cat/*".

/// Whether a split is called so: "train", "Val".
bool is_split_name(const std::string& word);

/// A group, or what is called as a split is.
struct Twin {
  std::string name;
  std::string path;  ///< of the group that is all of it; empty: there is none
  /// What it has in common with the others, and what that is in the file (or a pattern).
  std::map<std::string, std::string> members;
};
struct Alike {
  bool splits = false;  ///< by their names; else their types have to be alike, too
  std::vector<Twin> twins;

  std::vector<std::string> names() const;
  std::vector<std::string> stored() const;  ///< all that is in them
};
/// All there are below `group`, a path with '/' behind it or nothing. `layout`: names, or patterns.
std::vector<Alike> find_alike(std::span<const std::string> layout, const std::string& group);

/// All of them, as they stand behind a '#'.
std::string list_of(std::span<const std::string> names);
/// The same, under names made of what these have in common with their like.
std::string list_of_members(const Twin& twin, const std::string& group);
/// The same of all, under names made of paths below `group`.
std::string list_of_all(const Alike& alike, const std::string& group);

}  // namespace forebay
