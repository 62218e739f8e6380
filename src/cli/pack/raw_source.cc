// One file of images of one size, one behind the other, in (channel, height, width) order.
#include <fmt/format.h>

#include "cli/pack/image_encoder.hpp"
#include "cli/pack/input_file.hpp"
#include "cli/pack/labels.hpp"
#include "cli/pack/source.hpp"
#include "forebay/error.hpp"
#include "program/output.hpp"

namespace forebay::pack {
namespace {

ImageShape required_shape(const Options& options) {
  if (options.shape) return *options.shape;
  throw Error(ErrorKind::usage, "a raw file does not say what it holds",
              "name the shape of one record with --shape CxHxW");
}

class RawSource final : public Source {
 public:
  explicit RawSource(const Options& options)
      : encoder_(options),
        shape_(required_shape(options)),
        file_(options.source),
        labels_path_(options.labels) {
    const std::uint64_t size = file_size(options.source);
    if (size % shape_.bytes() != 0) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("{} bytes are not a whole number of {} records of {} bytes", size,
                              to_string(shape_), shape_.bytes()),
                  "correct --shape; a gzipped file has to be unpacked first",
                  at_file(options.source));
    }
    count_ = size / shape_.bytes();
    if (labels_path_.empty()) return;
    labels_ = read_labels(labels_path_);
    check_label_count(labels_, count_, labels_path_);
  }

  std::uint64_t count() const override { return count_; }

  std::string fingerprint() const override {
    return fmt::format("raw:{},{},{}", file_fingerprint(file_.path()),
                       labels_path_.empty() ? "no labels" : file_fingerprint(labels_path_),
                       encoder_.fingerprint());
  }

  SourceRecord read(std::uint64_t index) override {
    Image image{.shape = shape_, .pixels = std::vector<std::byte>(shape_.bytes())};
    file_.read(index * shape_.bytes(), image.pixels);
    std::optional<std::int32_t> label;
    if (!labels_.empty()) label = labels_[index];
    return {.name = {}, .value = encoder_.encode(std::move(image), label)};
  }

 private:
  ImageEncoder encoder_;
  ImageShape shape_;
  InputFile file_;
  std::string labels_path_;
  std::vector<std::int32_t> labels_;
  std::uint64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Source> open_raw_source(const Options& options) {
  return std::make_unique<RawSource>(options);
}

}  // namespace forebay::pack
