// What lies in a folder of classes: whose files are samples of which class, and what is none of
// them. As torchvision's ImageFolder has it:
//
//   root/cat/001.jpg  root/cat/more/002.jpg  root/dog/003.jpg     classes 0 and 1
//   root/001.jpg      root/002.jpg                                no classes
//
// Folders in the root are classes, numbered in the order of their names, by bytes. Files go by
// folder, then by name. Links to files and folders are followed; one that leads back to a folder
// that it lies in is left out. Where there are images, other files are left out; else every file is
// a sample. Names that begin with a dot are no data, nor is what programs leave behind
// (is_no_data()): what a folder is opened for does not depend on who has looked into it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace forebay::folder {

/// Counts by reason what is no sample, and keeps the first of each for messages.
class LeftOut {
 public:
  enum class Why : std::uint8_t { not_image, broken_link, outside, not_file, loop };

  void add(Why why, const std::string& path);
  /// A hidden name: no data, and so not counted with the others; but somebody may have meant it.
  void add_hidden(const std::string& path);
  std::uint64_t count() const;
  /// "7 left out: 4 not images, 2 broken links, 1 outside a class; such as 'cat/notes.txt', ...";
  /// empty where nothing is.
  std::string text() const;
  /// {"not images", 4}, {"hidden", 1}, ...: what there is.
  std::vector<std::pair<std::string, std::uint64_t>> counts() const;

 private:
  struct Reason {
    std::uint64_t count = 0;
    std::string first;
  };
  std::array<Reason, 5> reasons_;
  Reason hidden_;
};

struct Class {
  std::string name;                ///< empty: there are no classes
  std::vector<std::string> files;  ///< below the root
};

struct Tree {
  std::vector<Class> classes;  ///< by number; of one without files too
  bool labelled = false;       ///< there are classes
  bool images = false;         ///< files are images
  LeftOut left_out;

  std::vector<std::string> class_names() const;
  /// What there is to say of them: which have no samples, and that they may be none.
  std::vector<std::string> notes_of_classes() const;
  /// These, behind what was left out.
  std::vector<std::string> notes() const;
};

/// Whether there are images in a folder, or in those inside of it, `depth` folders deep. Throws as
/// find_tree().
bool has_images(const std::string& folder, int depth);

/// Throws io for a folder that cannot be listed, or a name in it that cannot be looked at.
Tree find_tree(const std::string& root);

}  // namespace forebay::folder
