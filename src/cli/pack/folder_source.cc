// A directory of class directories of image files, as folder_tree.hpp sees it. A record's key holds
// the path below SOURCE, so equal file names stay apart. Classes are numbered in the order of their
// names, or as those of another data set are.
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "cli/pack/input_file.hpp"
#include "cli/pack/source.hpp"
#include "forebay/error.hpp"
#include "format/dataset_files.hpp"
#include "program/output.hpp"

namespace forebay::pack {
namespace {

namespace fs = std::filesystem;

struct ImageFile {
  std::string path;  // below SOURCE
  std::int32_t label;
};

std::uint64_t hash_of(const std::string& text, std::uint64_t seed) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

/// By what `seed` makes of each name: where files come or go, all others stay in their order.
void shuffle(std::vector<ImageFile>& files, std::uint64_t seed) {
  std::vector<std::pair<std::uint64_t, ImageFile>> drawn;
  for (ImageFile& file : files) drawn.emplace_back(hash_of(file.path, seed), std::move(file));
  std::ranges::sort(drawn, {},
                    [](const auto& one) { return std::tie(one.first, one.second.path); });
  for (std::size_t i = 0; i < files.size(); ++i) files[i] = std::move(drawn[i].second);
}

folder::Tree find_classes(const Options& options) {
  const Where where = at_file(options.source);
  if (!fs::is_directory(options.source)) {
    throw Error(ErrorKind::not_found, "not a directory",
                "give a directory with one sub-directory of images for each class", where);
  }
  folder::Tree tree = folder::find_tree(options.source);
  if (tree.labelled && tree.images) return tree;
  const std::string others = tree.left_out.text();
  throw Error(ErrorKind::not_found,
              "no class directory holds a file of an image (.jpg, .png, .webp, .gif, .bmp, .tif)" +
                  (others.empty() ? others : ": " + others),
              "give a directory with one sub-directory of images for each class", where);
}

/// The number of each class of `tree` among `names`.
std::vector<std::int32_t> numbers_of(const folder::Tree& tree, const ClassNames& names,
                                     const Options& options) {
  std::vector<std::int32_t> numbers;
  for (const folder::Class& one : tree.classes) {
    const auto at = std::ranges::find(names, one.name);
    if (at == names.end()) {
      throw Error(ErrorKind::usage,
                  fmt::format("the folder '{}' is none of the {} classes of {}",
                              shown_name(one.name), names.size(), options.classes),
                  "move it elsewhere, or name a file or data set that has its class",
                  at_file(options.source));
    }
    numbers.push_back(static_cast<std::int32_t>(at - names.begin()));
  }
  return numbers;
}

class FolderSource final : public Source {
 public:
  explicit FolderSource(const Options& options) : encoder_(options), root_(options.source) {
    folder::Tree tree = find_classes(options);
    classes_ = options.classes.empty() ? tree.class_names() : class_names_of(options.classes);
    const std::vector<std::int32_t> numbers = numbers_of(tree, classes_, options);
    left_out_ = tree.left_out;
    notes_ = tree.notes_of_classes();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      for (std::string& file : tree.classes[i].files)
        files_.push_back({std::move(file), numbers[i]});
    }
    if (options.shuffle) {
      shuffle(files_, options.seed);
      order_ = fmt::format(",seed={}", options.seed);
    }
  }

  std::uint64_t count() const override { return files_.size(); }
  ClassNames classes() const override { return classes_; }
  bool has_files() const override { return true; }
  folder::LeftOut left_out() const override { return left_out_; }
  std::vector<std::string> notes() const override { return notes_; }

  std::string fingerprint() const override {
    return fmt::format("folder:{}{},classes={:016x},{}", fs::absolute(root_).string(), order_,
                       hash_of(class_names_text(classes_), 0), encoder_.fingerprint());
  }
  std::string name(std::uint64_t index) const override { return files_[index].path; }
  std::string state(std::uint64_t index) const override {
    return file_fingerprint((root_ / files_[index].path).string());
  }

  std::string read(std::uint64_t index) override {
    const ImageFile& file = files_[index];
    const std::string path = (root_ / file.path).string();
    try {
      return encode(read_file(path, kMaxImageBytes), file.label);
    } catch (const Error& error) {
      throw error.within(at_file(path));
    }
  }

 private:
  std::string encode(const std::vector<std::byte>& file, std::int32_t label) {
    try {
      return encoder_.encode_file(file, label);
    } catch (const Error& error) {
      // What is said of values that somebody packed is none of what can be done here.
      if (error.kind() == ErrorKind::unsupported) throw not_packed(error, "convert it to PNG");
      if (image_format(file) == ImageFormat::none) throw not_packed(error, "mend or remove it");
      throw;
    }
  }
  static Error not_packed(const Error& error, const char* remedy) {
    return Error(error.kind(), error.happened(), remedy);
  }

  ImageEncoder encoder_;
  fs::path root_;
  std::vector<ImageFile> files_;
  ClassNames classes_;
  std::string order_;
  folder::LeftOut left_out_;
  std::vector<std::string> notes_;
};

}  // namespace

std::unique_ptr<Source> open_folder_source(const Options& options) {
  return std::make_unique<FolderSource>(options);
}

}  // namespace forebay::pack
