// MNIST, Fashion-MNIST and their kin: IDX files of images and labels.
#include <fmt/format.h>

#include <filesystem>

#include "cli/pack/idx.hpp"
#include "cli/pack/image_encoder.hpp"
#include "cli/pack/labels.hpp"
#include "cli/pack/source.hpp"
#include "forebay/error.hpp"
#include "program/output.hpp"

namespace forebay::pack {
namespace {

namespace fs = std::filesystem;

/// The first of `names`, plain or gzipped, that exists in `directory`; empty when none does.
std::string find_beside(const fs::path& directory, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (const char* suffix : {"", ".gz"}) {
      const fs::path path = directory / (name + suffix);
      if (fs::is_regular_file(path)) return path.string();
    }
  }
  return {};
}

std::string find_images(const Options& options) {
  if (!fs::is_directory(options.source)) return options.source;
  const std::string prefix = options.split == "test" ? "t10k" : "train";
  const auto found =
      find_beside(options.source, {prefix + "-images-idx3-ubyte", prefix + "-images.idx3-ubyte"});
  if (!found.empty()) return found;
  throw Error(ErrorKind::not_found, fmt::format("no {}-images-idx3-ubyte[.gz]", prefix),
              "name the images file itself, or see --split", at_file(options.source));
}

std::string replace_last(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.rfind(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string find_labels(const Options& options, const fs::path& images) {
  if (!options.labels.empty()) return options.labels;
  std::string name = images.filename().string();
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  const std::string labels = replace_last(replace_last(name, "images", "labels"), "idx3", "idx1");
  const auto found = labels == name ? "" : find_beside(images.parent_path(), {labels});
  if (!found.empty()) return found;
  throw Error(ErrorKind::not_found, "no labels file beside the images", "name it with --labels",
              at_file(images.string()));
}

class IdxSource final : public Source {
 public:
  explicit IdxSource(const Options& options)
      : encoder_(options),
        images_(find_images(options)),
        labels_path_(find_labels(options, images_.path())),
        header_(read_idx_header(images_)),
        labels_(read_labels(labels_path_)) {
    check_label_count(labels_, count(), labels_path_);
    shape_ = image_shape_of_header();
    images_.check_end(header_.bytes + count() * shape_.bytes());
  }

  std::uint64_t count() const override { return header_.dimensions[0]; }

  std::string fingerprint() const override {
    return fmt::format("idx:{},{},{}", file_fingerprint(images_.path()),
                       file_fingerprint(labels_path_), encoder_.fingerprint());
  }

  SourceRecord read(std::uint64_t index) override {
    Image image{.shape = shape_, .pixels = std::vector<std::byte>(shape_.bytes())};
    images_.read(header_.bytes + index * shape_.bytes(), image.pixels);
    return {.name = {}, .value = encoder_.encode(std::move(image), labels_[index])};
  }

 private:
  // count, height, width; or count, channels, height, width.
  ImageShape image_shape_of_header() const {
    const auto& sizes = header_.dimensions;
    const Where where = at_file(images_.path(), 0);
    if (sizes.size() < 3) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("an IDX file of {} dimensions holds no images", sizes.size()),
                  "name the images file", where);
    }
    const std::uint64_t channels = sizes.size() == 4 ? sizes[1] : 1;
    const std::uint64_t height = sizes[sizes.size() - 2];
    const std::uint64_t width = sizes[sizes.size() - 1];
    if (channels == 0 || height == 0 || width == 0 || height > kMaxImageBytes / width ||
        channels > kMaxImageBytes / (height * width)) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("impossible images of {}x{}x{}", channels, height, width),
                  "the file is damaged: fetch it again", where);
    }
    return {static_cast<std::uint32_t>(channels), static_cast<std::uint32_t>(height),
            static_cast<std::uint32_t>(width)};
  }

  ImageEncoder encoder_;
  InputFile images_;
  std::string labels_path_;
  IdxHeader header_;
  std::vector<std::int32_t> labels_;
  ImageShape shape_;
};

}  // namespace

std::unique_ptr<Source> open_idx_source(const Options& options) {
  return std::make_unique<IdxSource>(options);
}

}  // namespace forebay::pack
