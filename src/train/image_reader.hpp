// A loader of labelled images: each batch decoded into one array of pixels and one of labels.
//
// It asks two things of a data set: a field "image" (channel, height, width, or height, width) and
// a scalar integer field "label". Labels are checked against the number of classes here, where the
// sample's key is still at hand.
//
// Methods that say collective must be called by all ranks; errors are those of Loader. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "forebay/loader.hpp"
#include "train/network.hpp"

namespace forebay {

class ImageReader {
 public:
  /// Collective. Throws, on all ranks, what Loader::open throws, and unsupported for data sets
  /// without such fields.
  ImageReader(const std::shared_ptr<Communicator>& comm, const std::string& dataset,
              const LoaderOptions& options, Trace* trace);

  const ImageShape& shape() const { return shape_; }
  const StridedOrder& order() const { return loader_.order(); }
  Loader& loader() { return loader_; }
  /// The iteration that next() will deliver.
  std::uint64_t next_iteration() const { return next_iteration_; }

  /// Waits for the next batch; false after the last. Collective.
  bool next();
  /// Decodes the batch and releases it. Throws corrupt for values that do not decode, unsupported
  /// for labels outside [0, classes), naming sample and key.
  void decode(std::uint64_t classes);

  /// The decoded batch without the samples from global position `end` on. Valid until the next
  /// decode().
  ImageBatch images(std::optional<std::uint64_t> end = {}) const;

 private:
  void find_fields();
  void read_labels(std::uint64_t classes);

  std::string dataset_;
  Loader loader_;
  ImageShape shape_;
  std::size_t image_field_ = 0;
  std::size_t label_field_ = 0;
  std::optional<Batch> batch_;
  std::vector<std::vector<std::byte>> fields_;
  std::vector<std::int64_t> labels_;
  std::uint64_t next_iteration_ = 0;
  std::uint64_t first_position_ = 0;  ///< of the decoded batch
};

}  // namespace forebay
