#include "format/folder/folder.hpp"

#include <algorithm>
#include <filesystem>

#include "forebay/error.hpp"
#include "format/folder/folder_tree.hpp"
#include "format/member_set.hpp"
#include "storage/url.hpp"

namespace forebay::folder {
namespace {

namespace fs = std::filesystem;

/// Opens every file of `tree`, and numbers classes.
std::unique_ptr<DataSet> make_set(const FormatRequest& request, const std::string& root,
                                  const Tree& tree) {
  FoundMembers found;
  FormatRequest files = request;
  files.found.files.clear();
  for (std::size_t label = 0; label < tree.classes.size(); ++label) {
    for (const std::string& path : tree.classes[label].files) {
      found.begin_sample(path);
      found.add(tree.images ? "image" : "file",
                {.file = static_cast<std::uint32_t>(files.found.files.size())});
      if (tree.labelled) found.add_in_memory("label", std::to_string(label));
      files.found.files.push_back(root + "/" + path);
    }
  }
  if (tree.images) found.set_images("image");
  for (const std::string& note : tree.notes()) found.note(note);
  found.set_labels(tree.class_names());
  found.set_whole_files();
  return std::make_unique<MemberSet>(request.text, "folder", files.open_files(),
                                     std::move(found).choose(request.found.fields, request.text));
}

std::unique_ptr<DataSet> open_folder(const FormatRequest& request) {
  std::string root = without_file_scheme(request.found.files.front());
  while (root.size() > 1 && root.ends_with('/')) root.pop_back();
  if (request.found.files.size() != 1 || !fs::is_directory(root)) {
    throw Error(ErrorKind::usage, "files in folders are named by the one folder that holds all",
                "name that folder", {.file = request.text});
  }
  const Tree tree = find_tree(root);
  const bool none =
      std::ranges::all_of(tree.classes, [](const Class& one) { return one.files.empty(); });
  if (none) {
    const std::string others = tree.left_out.text();
    throw Error(ErrorKind::not_found,
                "the folder holds no sample" + (others.empty() ? others : ": " + others),
                "check the path", {.file = request.text});
  }
  return make_set(request, root, tree);
}

/// Images in the folder or in the folders inside of it. Anything else has to be asked for: an LMDB
/// database is a folder too.
bool is_folder_of_images(const FirstFile& first) {
  return !first.file && !fs::exists(fs::path(first.path) / "data.mdb") && has_images(first.path, 2);
}

}  // namespace

Format folder_format() {
  return {.name = "folder",
          .description = "a folder of files where they lie, folders inside of it being labels",
          .recognise = is_folder_of_images,
          .open = open_folder};
}

}  // namespace forebay::folder
