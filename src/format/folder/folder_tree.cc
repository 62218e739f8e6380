#include "format/folder/folder_tree.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "forebay/error.hpp"
#include "format/class_names.hpp"
#include "format/member_set.hpp"

namespace forebay::folder {
namespace {

using Why = LeftOut::Why;

// By Why: of one, and of several.
constexpr std::pair<const char*, const char*> kWords[] = {
    {"not an image", "not images"},
    {"broken link", "broken links"},
    {"outside a class", "outside a class"},
    {"not a file", "not files"},
    {"link that leads back", "links that lead back"},
};

[[noreturn]] void throw_system(const std::string& path, const char* what) {
  throw Error(ErrorKind::io, fmt::format("{}: {}", what, std::strerror(errno)),
              "check that it may be read", {.file = path});
}

/// Who a folder is, whatever links lead to it.
struct FolderId {
  dev_t device;
  ino_t inode;
  bool operator==(const FolderId&) const = default;
};

struct Entry {
  enum class Kind : std::uint8_t { file, folder, broken_link, other };
  Kind kind = Kind::other;
  std::string name;
};

/// What `path` is, or leads to.
Entry::Kind kind_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ELOOP || errno == ENOTDIR) return Entry::Kind::broken_link;
    throw_system(path, "cannot look at it");
  }
  if (S_ISREG(status.st_mode)) return Entry::Kind::file;
  return S_ISDIR(status.st_mode) ? Entry::Kind::folder : Entry::Kind::other;
}

/// All names in a folder but "." and "..", by bytes.
std::vector<Entry> list(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> at(::opendir(folder.c_str()), ::closedir);
  if (!at) throw_system(folder, "cannot list the folder");
  std::vector<Entry> entries;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(at.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    Entry::Kind kind = Entry::Kind::file;
    if (entry->d_type != DT_REG && !is_no_data(name)) kind = kind_of(folder + "/" + name);
    entries.push_back({kind, name});
  }
  if (errno != 0) throw_system(folder, "cannot list the folder");
  std::ranges::sort(entries, {}, &Entry::name);
  return entries;
}

/// Looks through one folder after the other, and knows those that it is in.
class Walk {
 public:
  Walk(std::string root, Tree& tree) : root_(std::move(root)), tree_(tree) {}

  void run() {
    inside_.push_back(id_of({}));
    std::vector<std::string> files;
    for (const Entry& entry : list(root_)) {
      if (entry.kind == Entry::Kind::folder && !is_no_data(entry.name)) {
        add_class(entry.name);
      } else {
        take(entry, entry.name, files);
      }
    }
    tree_.labelled = !tree_.classes.empty();
    if (!tree_.labelled) {
      tree_.classes.push_back({.name = {}, .files = std::move(files)});
      return;
    }
    for (const std::string& file : files) tree_.left_out.add(Why::outside, file);
  }

 private:
  /// A folder and the files in it, below the root.
  struct Listed {
    std::string folder;
    std::vector<std::string> files;
  };

  std::string path_of(const std::string& below) const {
    return below.empty() ? root_ : root_ + "/" + below;
  }

  FolderId id_of(const std::string& below) const {
    struct stat status {};
    if (::stat(path_of(below).c_str(), &status) != 0)
      throw_system(path_of(below), "cannot look at it");
    return {status.st_dev, status.st_ino};
  }

  void add_class(const std::string& name) {
    std::vector<Listed> folders;
    add_folder(name, folders);
    if (folders.empty()) return;  // it leads back
    std::ranges::sort(folders, {}, &Listed::folder);
    Class one{.name = name, .files = {}};
    for (Listed& folder : folders) {
      std::ranges::move(folder.files, std::back_inserter(one.files));
    }
    tree_.classes.push_back(std::move(one));
  }

  /// `below` and all folders inside of it.
  void add_folder(const std::string& below, std::vector<Listed>& folders) {
    const FolderId id = id_of(below);
    if (std::ranges::count(inside_, id) > 0) return tree_.left_out.add(Why::loop, below);
    inside_.push_back(id);
    Listed listed{.folder = below, .files = {}};
    for (const Entry& entry : list(path_of(below))) {
      const std::string path = below + "/" + entry.name;
      if (entry.kind == Entry::Kind::folder && !is_no_data(entry.name)) {
        add_folder(path, folders);
      } else {
        take(entry, path, listed.files);
      }
    }
    folders.push_back(std::move(listed));
    inside_.pop_back();
  }

  /// Anything but a folder of data.
  void take(const Entry& entry, const std::string& path, std::vector<std::string>& files) {
    if (is_no_data(entry.name)) {
      if (!is_left_behind(entry.name)) tree_.left_out.add_hidden(path);
    } else if (entry.kind == Entry::Kind::file) {
      files.push_back(path);
    } else {
      tree_.left_out.add(entry.kind == Entry::Kind::broken_link ? Why::broken_link : Why::not_file,
                         path);
    }
  }

  std::string root_;
  Tree& tree_;
  std::vector<FolderId> inside_;
};

void keep_images(Tree& tree) {
  for (Class& one : tree.classes) {
    std::erase_if(one.files, [&](const std::string& file) {
      if (is_image_name(file)) return false;
      tree.left_out.add(Why::not_image, file);
      return true;
    });
  }
}

}  // namespace

void LeftOut::add(Why why, const std::string& path) {
  Reason& reason = reasons_[static_cast<std::size_t>(why)];
  if (reason.count++ == 0) reason.first = path;
}

void LeftOut::add_hidden(const std::string& path) {
  if (hidden_.count++ == 0) hidden_.first = path;
}

std::uint64_t LeftOut::count() const {
  std::uint64_t count = 0;
  for (const Reason& reason : reasons_) count += reason.count;
  return count;
}

std::vector<std::pair<std::string, std::uint64_t>> LeftOut::counts() const {
  std::vector<std::pair<std::string, std::uint64_t>> counts;
  for (std::size_t i = 0; i < reasons_.size(); ++i) {
    if (reasons_[i].count > 0) counts.emplace_back(kWords[i].second, reasons_[i].count);
  }
  if (hidden_.count > 0) counts.emplace_back("hidden", hidden_.count);
  return counts;
}

std::string LeftOut::text() const {
  std::vector<std::string> counted, such;
  for (std::size_t i = 0; i < reasons_.size(); ++i) {
    const Reason& reason = reasons_[i];
    if (reason.count == 0) continue;
    const auto& [one, several] = kWords[i];
    counted.push_back(fmt::format("{} {}", reason.count, reason.count == 1 ? one : several));
    such.push_back(fmt::format("'{}'", shown_name(reason.first)));
  }
  std::string text;
  if (!counted.empty()) {
    text = fmt::format("{} left out: {}; such as {}", count(), fmt::join(counted, ", "),
                       fmt::join(such, ", "));
  }
  if (hidden_.count == 0) return text;
  return text + fmt::format("{}{} hidden, which {} no data; such as '{}'", text.empty() ? "" : "; ",
                            hidden_.count, hidden_.count == 1 ? "is" : "are",
                            shown_name(hidden_.first));
}

std::vector<std::string> Tree::class_names() const {
  std::vector<std::string> names;
  for (const Class& one : classes) {
    if (labelled) names.push_back(one.name);
  }
  return names;
}

std::vector<std::string> Tree::notes() const {
  std::vector<std::string> notes = notes_of_classes();
  if (std::string text = left_out.text(); !text.empty()) notes.insert(notes.begin(), text);
  return notes;
}

std::vector<std::string> Tree::notes_of_classes() const {
  std::vector<std::string> notes;
  for (const Class& one : classes) {
    if (!labelled || !one.files.empty()) continue;
    notes.push_back(no_samples_note(one.name));
  }
  if (std::string doubt = doubtful_classes_note(class_names()); !doubt.empty()) {
    notes.push_back(doubt);
  }
  return notes;
}

bool has_images(const std::string& folder, int depth) {
  const std::vector<Entry> entries = list(folder);
  const auto shown = [](const Entry& entry, Entry::Kind kind) {
    return entry.kind == kind && !is_no_data(entry.name);
  };
  return std::ranges::any_of(entries,
                             [&](const Entry& entry) {
                               return shown(entry, Entry::Kind::file) && is_image_name(entry.name);
                             }) ||
         (depth > 1 && std::ranges::any_of(entries, [&](const Entry& entry) {
            return shown(entry, Entry::Kind::folder) &&
                   has_images(folder + "/" + entry.name, depth - 1);
          }));
}

Tree find_tree(const std::string& root) {
  Tree tree;
  Walk(root, tree).run();
  tree.images = std::ranges::any_of(
      tree.classes, [](const Class& one) { return std::ranges::any_of(one.files, is_image_name); });
  if (tree.images) keep_images(tree);
  return tree;
}

}  // namespace forebay::folder
