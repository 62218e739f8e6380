#include "format/folder/folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "forebay/error.hpp"
#include "format/member_set.hpp"
#include "storage/url.hpp"

namespace forebay::folder {
namespace {

namespace fs = std::filesystem;

// Deeper is a loop of links.
constexpr int kDeepest = 64;

bool is_hidden(const fs::path& path) { return path.filename().native().starts_with('.'); }

bool is_image(const fs::path& path) { return is_image_name(path.filename().native()); }

/// What one folder holds, without hidden ones, each kind sorted by bytes.
struct Listing {
  std::vector<fs::path> folders;
  std::vector<fs::path> files;
};

Listing list(const fs::path& folder) {
  Listing listing;
  std::error_code failed;
  fs::directory_iterator at(folder, failed);
  for (; !failed && at != fs::directory_iterator(); at.increment(failed)) {
    if (is_hidden(at->path())) continue;
    std::error_code gone;  // a link that leads nowhere
    const fs::file_status status = at->status(gone);
    if (fs::is_directory(status)) listing.folders.push_back(at->path());
    if (fs::is_regular_file(status)) listing.files.push_back(at->path());
  }
  if (failed) {
    throw Error(ErrorKind::io, "cannot list the folder: " + failed.message(),
                "check that it may be read", {.file = folder.native()});
  }
  const auto by_bytes = [](const fs::path& path) { return std::string_view(path.native()); };
  std::ranges::sort(listing.folders, {}, by_bytes);
  std::ranges::sort(listing.files, {}, by_bytes);
  return listing;
}

/// `folder` and all inside of it.
void add_folders(const fs::path& folder, int depth, std::vector<fs::path>& all) {
  if (depth > kDeepest) {
    throw Error(ErrorKind::unsupported, "folders lie in each other without an end",
                "remove links that lead back", {.file = folder.native()});
  }
  all.push_back(folder);
  for (const fs::path& inside : list(folder).folders) add_folders(inside, depth + 1, all);
}

/// All files of a class, in the order of samples: by folder, then by name.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> folders;
  add_folders(folder, 0, folders);
  std::ranges::sort(folders, {}, [](const fs::path& p) { return std::string_view(p.native()); });
  std::vector<fs::path> files;
  for (const fs::path& one : folders) {
    for (fs::path& file : list(one).files) files.push_back(std::move(file));
  }
  return files;
}

struct Class {
  std::string name;
  std::vector<fs::path> files;
};

struct Tree {
  std::vector<Class> classes;  ///< one without a name: there are none
  bool labelled = false;
  bool images = false;
  std::vector<std::string> notes;
};

void keep_images(Tree& tree) {
  const auto others = [](const fs::path& file) { return !is_image(file); };
  std::uint64_t left_out = 0;
  std::string first;
  for (Class& one : tree.classes) {
    const auto at = std::ranges::find_if(one.files, others);
    if (at != one.files.end() && first.empty()) first = at->native();
    left_out += std::erase_if(one.files, others);
  }
  if (left_out == 0) return;
  tree.notes.push_back(
      fmt::format("{} files that are no images are left out, the first is '{}'", left_out, first));
}

Tree find_files_of(const fs::path& root) {
  Tree tree;
  Listing top = list(root);
  tree.labelled = !top.folders.empty();
  if (!tree.labelled) {
    tree.classes.push_back({.name = {}, .files = std::move(top.files)});
  } else if (!top.files.empty()) {
    tree.notes.push_back(
        fmt::format("{} files beside the folders of classes are left out, the "
                    "first is '{}'",
                    top.files.size(), top.files.front().native()));
  }
  for (const fs::path& folder : top.folders) {
    tree.classes.push_back({.name = folder.filename().native(), .files = files_below(folder)});
  }
  for (const Class& one : tree.classes) {
    tree.images = tree.images || std::ranges::any_of(one.files, is_image);
  }
  if (tree.images) keep_images(tree);
  for (const Class& one : tree.classes) {
    if (tree.labelled && one.files.empty()) {
      tree.notes.push_back(fmt::format("class '{}' has a number and no samples", one.name));
    }
  }
  return tree;
}

/// Opens every file of `tree`, and numbers classes.
std::unique_ptr<DataSet> make_set(const FormatRequest& request, const fs::path& root,
                                  const Tree& tree) {
  FoundMembers found;
  FormatRequest files = request;
  files.found.files.clear();
  std::vector<std::string> labels;
  for (std::size_t label = 0; label < tree.classes.size(); ++label) {
    for (const fs::path& path : tree.classes[label].files) {
      files.found.files.push_back(path.native());
    }
    if (tree.labelled) labels.push_back(tree.classes[label].name);
  }
  DataFiles opened = files.open_files();
  std::uint32_t number = 0;
  for (std::size_t label = 0; label < tree.classes.size(); ++label) {
    for (const fs::path& path : tree.classes[label].files) {
      found.begin_sample(path.lexically_relative(root).native());
      found.add(tree.images ? "image" : "file", {.file = number});
      if (tree.labelled) found.add_in_memory("label", std::to_string(label));
      ++number;
    }
  }
  for (const std::string& note : tree.notes) found.note(note);
  found.set_labels(std::move(labels));
  found.set_whole_files();
  return std::make_unique<MemberSet>(request.text, "folder", std::move(opened),
                                     std::move(found).choose(request.found.fields, request.text));
}

std::unique_ptr<DataSet> open_folder(const FormatRequest& request) {
  const fs::path root = without_file_scheme(request.found.files.front());
  if (request.found.files.size() != 1 || !fs::is_directory(root)) {
    throw Error(ErrorKind::usage, "files in folders are named by the one folder that holds all",
                "name that folder", {.file = request.text});
  }
  const Tree tree = find_files_of(root);
  const bool none =
      std::ranges::all_of(tree.classes, [](const Class& one) { return one.files.empty(); });
  if (none) {
    throw Error(ErrorKind::not_found, "the folder holds no files but hidden ones", "check the path",
                {.file = request.text});
  }
  return make_set(request, root, tree);
}

/// Images in the folder or in the folders inside of it. Anything else has to be asked for: an LMDB
/// database is a folder too.
bool is_folder_of_images(const FirstFile& first) {
  if (first.file || fs::exists(fs::path(first.path) / "data.mdb")) return false;
  const Listing top = list(first.path);
  if (std::ranges::any_of(top.files, is_image)) return true;
  return std::ranges::any_of(top.folders, [](const fs::path& folder) {
    return std::ranges::any_of(list(folder).files, is_image);
  });
}

}  // namespace

Format folder_format() {
  return {.name = "folder",
          .description = "a folder of files where they lie, folders inside of it being labels",
          .recognise = is_folder_of_images,
          .open = open_folder};
}

}  // namespace forebay::folder
