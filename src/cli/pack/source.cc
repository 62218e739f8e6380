#include "cli/pack/source.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "forebay/error.hpp"
#include "format/codec/datum.hpp"
#include "program/output.hpp"

namespace forebay::pack {
namespace {

using Open = std::unique_ptr<Source> (*)(const Options&);
/// By Origin.
constexpr Open kSources[] = {open_idx_source, open_cifar10_source, open_folder_source,
                             open_raw_source, open_synthetic_source};

}  // namespace

std::unique_ptr<Source> open_source(const Options& options) {
  try {
    return kSources[static_cast<std::size_t>(options.from)](options);
  } catch (const std::filesystem::filesystem_error& error) {
    throw Error(ErrorKind::io, error.code().message(), "check the path and its permissions",
                at_file(error.path1().string()));
  }
}

namespace {

std::vector<std::byte> encode_as(Encoding encoding, const Image& image, int quality) {
  return encoding == Encoding::jpeg ? encode_jpeg(image.shape, image.pixels, quality)
                                    : encode_png(image.shape, image.pixels);
}

bool is_format(Encoding encoding, ImageFormat format) {
  return (encoding == Encoding::jpeg && format == ImageFormat::jpeg) ||
         (encoding == Encoding::png && format == ImageFormat::png);
}

/// Whether that is what `file` is where nothing is chosen.
bool is_read_as(std::span<const std::byte> file, const Image& image) {
  const Image plain = decode_image(file);
  return plain.shape == image.shape && plain.pixels == image.pixels;
}

}  // namespace

ImageEncoder::ImageEncoder(const Options& options)
    : encoding_(options.encode),
      quality_(options.quality),
      choices_(options.images),
      wanted_(options.shape) {}

namespace {

/// What makes one kind of both.
std::string remedy_of(const ImageShape& found, const ImageShape& first) {
  if (found.type != first.type) {
    return "pack files of each depth into a data set of their own, or bring them to one depth";
  }
  const bool other_channels = found.channels != first.channels;
  if (found.bits != first.bits && !other_channels) {
    return "pack all as 0 to 255 with --codec image:gray, or the numbers that are in the files "
           "with --codec image:palette=index";
  }
  const bool sides = found.height != first.height || found.width != first.width;
  // One channel and three become each other; transparency and single bits are to be decided on.
  const bool decide = other_channels && (found.channels % 2 == 0 || first.channels % 2 == 0 ||
                                         found.bits != first.bits);
  const std::string channels = "say which channels all shall have, with --codec image:rgb";
  const std::string shape = "name the shape that all images shall be brought to with --shape CxHxW";
  if (!sides) return channels;
  return decide ? channels + ", and " + shape : shape;
}

}  // namespace

ImageShape ImageEncoder::target(const ImageShape& found) const {
  ImageShape shape = wanted_.value_or(first_.value_or(found));
  shape.type = found.type;
  shape.bits = found.bits;
  if (!first_ || found == *first_) return shape;
  const bool other_depth = found.type != first_->type || found.bits != first_->bits;
  if (wanted_ && !other_depth) return shape;
  throw Error(
      ErrorKind::corrupt,
      fmt::format("the image is {} but the first one is {}", to_string(found), to_string(*first_)),
      remedy_of(found, *first_));
}

void ImageEncoder::check_kept(const Image& image) const {
  const bool bytes = image.shape.type == ElementType::u8;
  std::string_view lost, remedy = "store them with --encode png, where all have 16 bits";
  if (!bytes && image.shape.type != ElementType::u16) {
    lost = "images are packed as u8 or u16";
    remedy = "read the files where they lie, without packing them";
  } else if (encoding_ == Encoding::raw && !bytes) {
    lost = "a Datum's pixels are bytes";
  } else if (encoding_ == Encoding::jpeg && !bytes) {
    lost = "JPEG's pixels are bytes";
  } else if (encoding_ == Encoding::jpeg && image.classes) {
    lost = "JPEG does not keep numbers of classes as they are";
    remedy = "store them with --encode png or raw";
  } else if (encoding_ == Encoding::jpeg && image.shape.channels % 2 == 0) {
    lost = "JPEG has no transparency";
    remedy = "store it with --encode png or raw, or drop it with --codec image:rgb";
  }
  if (lost.empty()) return;
  throw Error(ErrorKind::usage, fmt::format("an image of {}, and {}", to_string(image.shape), lost),
              std::string(remedy));
}

std::string ImageEncoder::encode(Image image, std::optional<std::int32_t> label) {
  const ImageShape found = image.shape, shape = target(found);
  check_kept(image);
  if (found != shape) image = resize(std::move(image), shape);
  if (!first_) first_ = found;
  if (encoding_ == Encoding::raw) return make_datum(shape, image.pixels, label);
  return make_encoded_datum(shape, encode_as(encoding_, image, quality_), label);
}

std::string ImageEncoder::encode_file(std::span<const std::byte> file,
                                      std::optional<std::int32_t> label) {
  Image image = decode_image(file, choices_);  // also proves that the file decodes
  const bool stays = is_format(encoding_, image_format(file)) && target(image.shape) == image.shape;
  if (stays && (choices_ == ImageChoices{} || is_read_as(file, image))) {
    if (!first_) first_ = image.shape;
    return make_encoded_datum(image.shape, file, label);
  }
  return encode(std::move(image), label);
}

std::string ImageEncoder::fingerprint() const {
  return fmt::format("encode={},quality={},shape={}{}", static_cast<int>(encoding_),
                     encoding_ == Encoding::jpeg ? quality_ : 0,
                     wanted_ ? to_string(*wanted_) : "as found", choices_.text());
}

}  // namespace forebay::pack
