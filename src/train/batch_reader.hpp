// A loader of samples to learn from: each batch as one array of inputs and one of what the network
// is to say of them. Threads of the loader decode the next batches while this one is learned from.
//
// To classify, it asks a data set for a field "image" (channel, height, width, or height, width)
// and a scalar integer field "label"; to regress, for a field "x" of any shape and a field "y" of
// f32 or f64, under these names or those that the caller gives. A data set of two fields that are
// not named so is taken as input and target in this order. Labels are checked against the number
// of classes here, where the sample's key is still at hand.
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

/// What is wanted of a data set.
struct FieldNames {
  Task task = Task::classify;
  std::string input;  ///< empty: the usual name
  std::string target;
};

class BatchReader {
 public:
  /// Collective. Throws, on all ranks, what Loader::open throws, and unsupported for data sets
  /// without such fields.
  BatchReader(const std::shared_ptr<Communicator>& comm, const std::string& dataset,
              const LoaderOptions& options, const FieldNames& names, Trace* trace);

  /// Of one input; an image has three extents.
  const Shape& shape() const { return shape_; }
  /// Numbers of a target; 1 for a label.
  std::uint64_t targets() const;
  Loader& loader() { return loader_; }
  const Loader& loader() const { return loader_; }
  /// The iteration that next() will deliver.
  std::uint64_t next_iteration() const { return next_iteration_; }

  /// Waits for the next batch; false after the last. Collective. Throws corrupt for values that do
  /// not decode, naming sample and key.
  bool next();
  /// Of the last batch that next() gave, also once it is released.
  BatchPass pass() const { return pass_; }
  /// Gives the batch back, whose buffer others may be waiting for.
  void release() { batch_.reset(); }
  /// Makes labels or targets of the batch. Throws unsupported for labels outside [0, classes),
  /// naming sample and key.
  void read(std::uint64_t classes);

  /// Samples of the batch; 0 where this rank's share is empty, and where there is no batch.
  std::size_t count() const { return batch_ ? batch_->samples().size() : 0; }
  /// The batch, after read(); valid until it is released.
  TrainingBatch batch() const { return first(count()); }
  /// The same without the samples from global position `end` on. For the strided order.
  TrainingBatch batch_before(std::uint64_t end) const;

 private:
  void find_fields(const FieldNames& names);
  void check_label() const;
  void check_target() const;
  void read_labels(std::uint64_t classes);
  void read_targets();
  TrainingBatch first(std::size_t count) const;
  const Field& input_field() const { return loader_.schema().fields[input_]; }
  const Field& target_field() const { return loader_.schema().fields[target_]; }

  std::string dataset_;
  Task task_;
  Loader loader_;
  Shape shape_;
  std::size_t input_ = 0;  ///< number of the field
  std::size_t target_ = 0;
  std::optional<Batch> batch_;
  BatchPass pass_;
  std::vector<std::int64_t> labels_;
  std::vector<float> targets_;
  std::uint64_t next_iteration_ = 0;
};

}  // namespace forebay
