// A directory of class directories of image files. The classes are numbered in the order of
// their names; a record's key holds the path below SOURCE, so equal file names stay apart.
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <random>

#include "cli/pack/input_file.hpp"
#include "cli/pack/source.hpp"
#include "forebay/error.hpp"
#include "program/output.hpp"

namespace forebay::pack {
namespace {

namespace fs = std::filesystem;

struct ImageFile {
  std::string path;  // below SOURCE
  std::int32_t label;
};

bool has_image_suffix(const fs::path& path) {
  std::string suffix = path.extension().string();
  for (char& c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::array<std::string_view, 8> kSuffixes{".jpg", ".jpeg", ".png",  ".webp",
                                                      ".gif", ".bmp",  ".tiff", ".tif"};
  return std::ranges::find(kSuffixes, suffix) != kSuffixes.end();
}

std::vector<std::string> class_names(const std::string& source) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(source)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void add_class(const fs::path& source, const std::string& name, std::int32_t label,
               std::vector<ImageFile>& files) {
  const auto first = static_cast<std::ptrdiff_t>(files.size());
  for (const auto& entry : fs::recursive_directory_iterator(source / name)) {
    if (!has_image_suffix(entry.path()) || entry.is_directory()) continue;
    if (!entry.is_regular_file()) {  // left out silently, it would be a sample that nobody misses
      throw Error(ErrorKind::not_found, "not a file, or a link to none",
                  "restore the image, or remove it from the source",
                  at_file(entry.path().string()));
    }
    files.push_back({entry.path().lexically_relative(source).string(), label});
  }
  std::sort(files.begin() + first, files.end(),
            [](const ImageFile& a, const ImageFile& b) { return a.path < b.path; });
}

// Not std::shuffle, whose result differs between standard libraries.
void shuffle(std::vector<ImageFile>& files, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = files.size(); i > 1; --i) std::swap(files[i - 1], files[random() % i]);
}

std::vector<ImageFile> find_images(const Options& options) {
  const Where where = at_file(options.source);
  if (!fs::is_directory(options.source)) {
    throw Error(ErrorKind::not_found, "not a directory",
                "give a directory with one sub-directory of images for each class", where);
  }
  std::vector<ImageFile> files;
  std::int32_t label = 0;
  for (const std::string& name : class_names(options.source)) {
    add_class(options.source, name, label++, files);
  }
  if (files.empty()) {
    throw Error(ErrorKind::not_found,
                "no class directory holds a file of an image: .jpg, .png, .webp, .gif, .bmp, .tif",
                "give a directory with one sub-directory of images for each class", where);
  }
  if (options.shuffle) shuffle(files, options.seed);
  return files;
}

class FolderSource final : public Source {
 public:
  explicit FolderSource(const Options& options)
      : encoder_(options), root_(options.source), files_(find_images(options)) {}

  std::uint64_t count() const override { return files_.size(); }

  std::string fingerprint() const override {
    XXH64_hash_t hash = 0;
    for (const ImageFile& file : files_) {
      const std::string text = file_fingerprint((root_ / file.path).string());
      hash = XXH3_64bits_withSeed(text.data(), text.size(), hash);
    }
    return fmt::format("folder:{},{} files,{:016x},{}", fs::absolute(root_).string(), files_.size(),
                       hash, encoder_.fingerprint());
  }

  SourceRecord read(std::uint64_t index) override {
    const ImageFile& file = files_[index];
    const std::string path = (root_ / file.path).string();
    try {
      return {.name = file.path,
              .value = encoder_.encode_file(read_file(path, kMaxImageBytes), file.label)};
    } catch (const Error& error) {
      throw error.within(at_file(path));
    }
  }

 private:
  ImageEncoder encoder_;
  fs::path root_;
  std::vector<ImageFile> files_;
};

}  // namespace

std::unique_ptr<Source> open_folder_source(const Options& options) {
  return std::make_unique<FolderSource>(options);
}

}  // namespace forebay::pack
