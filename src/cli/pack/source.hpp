// Where packed records come from: one class a kind of source, all behind one interface.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/non_copyable.hpp"
#include "format/class_names.hpp"
#include "format/codec/image.hpp"
#include "format/folder/folder_tree.hpp"

namespace forebay::pack {

// What `forebay pack` was asked for.

enum class Origin : std::uint8_t { idx, cifar10, folder, raw, synthetic };
enum class Encoding : std::uint8_t { raw, jpeg, png };
/// What a file that cannot be packed does: `fail` ends the packing once all have been looked at,
/// `skip` leaves the file out. Both list all of them.
enum class OnError : std::uint8_t { fail, skip };

struct Options {
  std::string source;
  std::string destination;
  Origin from = Origin::idx;
  Encoding encode = Encoding::raw;
  int quality = 95;                   ///< of JPEG, 1 to 100
  std::uint64_t commit_every = 1000;  ///< records in a transaction, as in Caffe's tools
  std::optional<std::uint64_t> count;
  std::optional<ImageShape> shape;
  ImageChoices images;  ///< how image files are read
  std::string labels;   ///< file with the labels, for idx and raw
  std::string classes;  ///< file or data set whose names and numbers of classes are used
  OnError on_error = OnError::fail;
  std::string split = "train";  ///< which files of a directory: train or test
  std::string preset;           ///< of synthetic data
  std::string leave_out;        ///< of a data set: records that are no samples, as of loaders,
  std::string keep_records;     ///< and those that are, whatever they look like
  std::uint64_t seed = 0;
  bool shuffle = false;  ///< folder: files in an order drawn from `seed`
  bool resume = false;
  bool force = false;
  bool json = false;
  bool provenance = true;  ///< write a sidecar beside the data
};

/// Records 0..count()-1, the same ones each time. Cheapest when read in order.
class Source : private NonCopyable {
 public:
  virtual ~Source() = default;

  virtual std::uint64_t count() const = 0;
  /// One line that differs when the records may differ, as far as can be told without reading all
  /// of them: paths, sizes and times of files, seeds. Not of files() that are a record each.
  virtual std::string fingerprint() const = 0;
  /// The value of a record, as it is stored. Throws corrupt, io, not_found naming the file.
  virtual std::string read(std::uint64_t index) = 0;
  /// Of the classes that labels number; none: not known.
  virtual ClassNames classes() const { return {}; }

  /// Whether each record is a file of its own: one may be bad, mended or removed without the
  /// others.
  virtual bool has_files() const { return false; }
  /// Goes into the key behind the number; empty where the number says it all.
  virtual std::string name(std::uint64_t /*index*/) const { return {}; }
  /// Where has_files(): one line that differs when this one may differ. Throws as read().
  virtual std::string state(std::uint64_t /*index*/) const { return {}; }
  /// What lies beside the records and is none.
  virtual folder::LeftOut left_out() const { return {}; }
  /// What else is to be told of them.
  virtual std::vector<std::string> notes() const { return {}; }
};

/// Throws usage, not_found, corrupt, io.
std::unique_ptr<Source> open_source(const Options& options);

std::unique_ptr<Source> open_idx_source(const Options& options);
std::unique_ptr<Source> open_cifar10_source(const Options& options);
std::unique_ptr<Source> open_folder_source(const Options& options);
std::unique_ptr<Source> open_raw_source(const Options& options);
/// Generated images (SOURCE is "-"), or the records of a data set over and over.
std::unique_ptr<Source> open_synthetic_source(const Options& options);

// From an image and its label to a stored value: a Caffe Datum of pixels, or of a JPEG or PNG file.

/// All images of a data set get one shape: the one of --shape, else that of the first image. Their
/// depth is that of the first in any case.
class ImageEncoder {
 public:
  explicit ImageEncoder(const Options& options);

  /// Throws corrupt when the image has another shape than the first one and none was asked for,
  /// and usage where what is stored would not be what the image is.
  std::string encode(Image image, std::optional<std::int32_t> label);

  /// For an image file. It is stored as it is where its format and shape are the wanted ones, and
  /// it is read later as it was asked to be read now.
  std::string encode_file(std::span<const std::byte> file, std::optional<std::int32_t> label);

  /// What the values depend on, for Source::fingerprint().
  std::string fingerprint() const;

 private:
  ImageShape target(const ImageShape& found) const;
  /// Throws usage where the encoding does not keep what `image` is.
  void check_kept(const Image& image) const;

  Encoding encoding_;
  int quality_;
  ImageChoices choices_;
  std::optional<ImageShape> wanted_;
  std::optional<ImageShape> first_;
};

}  // namespace forebay::pack
