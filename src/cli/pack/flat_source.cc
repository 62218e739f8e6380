// Images of one size, one behind the other in (channel, height, width) order, in one file: as they
// are (raw), or behind a header, with their labels in another file (MNIST, Fashion-MNIST and their
// kin).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "cli/pack/input_file.hpp"
#include "cli/pack/source.hpp"
#include "forebay/error.hpp"
#include "program/output.hpp"

namespace forebay::pack {
namespace {

namespace fs = std::filesystem;

// The IDX format of MNIST: 0, 0, element type, number of dimensions, then each dimension as four
// bytes, most significant first, then the elements.

struct IdxHeader {
  std::vector<std::uint32_t> dimensions;
  std::uint64_t bytes = 0;  ///< of the header itself
};

constexpr std::byte kUnsignedBytes{0x08};
constexpr std::size_t kMaxDimensions = 4;

std::uint32_t big_endian(const std::byte* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return value;
}

/// Whether the file starts as IDX files do.
bool is_idx(InputFile& file) {
  std::array<std::byte, 4> magic{};
  try {
    file.read(0, magic);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::corrupt) return false;  // shorter than a header
    throw;
  }
  return magic[0] == std::byte{0} && magic[1] == std::byte{0} && magic[2] >= kUnsignedBytes &&
         magic[2] <= std::byte{0x0e};
}

/// Throws corrupt when it is not an IDX file, unsupported when its elements are not bytes.
IdxHeader read_idx_header(InputFile& file) {
  const Where where = at_file(file.path(), 0);
  if (!is_idx(file)) {
    throw Error(ErrorKind::corrupt, "not an IDX file", "name the images file of MNIST's format",
                where);
  }
  std::array<std::byte, 4> magic{};
  file.read(0, magic);
  const auto dimensions = std::to_integer<std::size_t>(magic[3]);
  if (magic[2] != kUnsignedBytes || dimensions == 0 || dimensions > kMaxDimensions) {
    throw Error(ErrorKind::unsupported,
                fmt::format("IDX elements of type {:#04x} in {} dimensions",
                            std::to_integer<unsigned>(magic[2]), dimensions),
                "only bytes in 1 to 4 dimensions are read", where);
  }
  std::vector<std::byte> sizes(4 * dimensions);
  file.read(magic.size(), sizes);
  IdxHeader header{.dimensions = {}, .bytes = magic.size() + sizes.size()};
  for (std::size_t i = 0; i < dimensions; ++i) {
    header.dimensions.push_back(big_endian(sizes.data() + 4 * i));
  }
  return header;
}

constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 32;

std::vector<std::int32_t> read_text_labels(const std::string& path) {
  const auto bytes = read_file(path, kMaxTextBytes);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::int32_t> labels;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    auto line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    std::int32_t label = 0;
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), label);
    if (parsed.ec != std::errc{} || parsed.ptr != line.data() + line.size()) {
      throw Error(
          ErrorKind::corrupt,
          fmt::format("line {} is not a label: '{}'", labels.size() + 1, line.substr(0, 40)),
          "write one whole number a line, or give an IDX file", at_file(path));
    }
    labels.push_back(label);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return labels;
}

// In pieces, so that a header that claims too much runs into the end of the file, not of memory.
std::vector<std::int32_t> read_idx_labels(InputFile& file, const IdxHeader& header) {
  std::vector<std::byte> piece(1 << 16);
  std::vector<std::int32_t> labels;
  while (labels.size() < header.dimensions[0]) {
    piece.resize(std::min<std::size_t>(piece.size(), header.dimensions[0] - labels.size()));
    file.read(header.bytes + labels.size(), piece);
    for (const std::byte b : piece) labels.push_back(std::to_integer<std::int32_t>(b));
  }
  file.check_end(header.bytes + labels.size());
  return labels;
}

/// Reads an IDX file of bytes (gzipped or not), or a text file with one whole number a line.
/// Throws not_found, io, corrupt.
std::vector<std::int32_t> read_labels(const std::string& path) {
  InputFile file(path);
  if (!is_idx(file)) return read_text_labels(path);
  const IdxHeader header = read_idx_header(file);
  if (header.dimensions.size() != 1) {
    throw Error(
        ErrorKind::corrupt,
        fmt::format("an IDX file of {} dimensions holds no labels", header.dimensions.size()),
        "name the labels file with --labels", at_file(path));
  }
  return read_idx_labels(file, header);
}

/// Throws corrupt unless there is one label a record.
void check_label_count(const std::vector<std::int32_t>& labels, std::uint64_t records,
                       const std::string& path) {
  if (labels.size() == records) return;
  throw Error(ErrorKind::corrupt, fmt::format("{} labels for {} records", labels.size(), records),
              "images and labels must belong together: see --labels", at_file(path));
}

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

/// Where the images of a file are.
struct FlatImages {
  std::uint64_t begin = 0;  ///< byte of the first one
  std::uint64_t count = 0;
  ImageShape shape;
};

class FlatSource final : public Source {
 public:
  /// `labels`: the file that has them; empty where there are none.
  FlatSource(const Options& options, std::string kind, InputFile file, const FlatImages& images,
             std::string labels)
      : encoder_(options),
        kind_(std::move(kind)),
        file_(std::move(file)),
        images_(images),
        labels_path_(std::move(labels)) {
    if (labels_path_.empty()) return;
    labels_ = read_labels(labels_path_);
    check_label_count(labels_, images_.count, labels_path_);
  }

  std::uint64_t count() const override { return images_.count; }

  std::string fingerprint() const override {
    return fmt::format("{}:{},{},{}", kind_, file_fingerprint(file_.path()),
                       labels_path_.empty() ? "no labels" : file_fingerprint(labels_path_),
                       encoder_.fingerprint());
  }

  std::string read(std::uint64_t index) override {
    const std::uint64_t bytes = images_.shape.bytes();
    Image image{.shape = images_.shape, .pixels = std::vector<std::byte>(bytes)};
    file_.read(images_.begin + index * bytes, image.pixels);
    std::optional<std::int32_t> label;
    if (!labels_.empty()) label = labels_[index];
    return encoder_.encode(std::move(image), label);
  }

 private:
  ImageEncoder encoder_;
  std::string kind_;
  InputFile file_;
  FlatImages images_;
  std::string labels_path_;
  std::vector<std::int32_t> labels_;
};

// count, height, width; or count, channels, height, width.
ImageShape image_shape_of(const IdxHeader& header, const std::string& path) {
  const auto& sizes = header.dimensions;
  const Where where = at_file(path, 0);
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

ImageShape required_shape(const Options& options) {
  if (options.shape) return *options.shape;
  throw Error(ErrorKind::usage, "a raw file does not say what it holds",
              "name the shape of one record with --shape CxHxW");
}

}  // namespace

std::unique_ptr<Source> open_idx_source(const Options& options) {
  InputFile file(find_images(options));
  std::string labels = find_labels(options, file.path());
  const IdxHeader header = read_idx_header(file);
  const FlatImages images{header.bytes, header.dimensions[0], image_shape_of(header, file.path())};
  file.check_end(images.begin + images.count * images.shape.bytes());
  return std::make_unique<FlatSource>(options, "idx", std::move(file), images, std::move(labels));
}

std::unique_ptr<Source> open_raw_source(const Options& options) {
  const ImageShape shape = required_shape(options);
  InputFile file(options.source);
  const std::uint64_t size = file_size(options.source);
  if (size % shape.bytes() != 0) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{} bytes are not a whole number of {} records of {} bytes", size,
                            to_string(shape), shape.bytes()),
                "correct --shape; a gzipped file has to be unpacked first",
                at_file(options.source));
  }
  const FlatImages images{.count = size / shape.bytes(), .shape = shape};
  return std::make_unique<FlatSource>(options, "raw", std::move(file), images, options.labels);
}

}  // namespace forebay::pack
