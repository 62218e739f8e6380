// The operation behind forebay.tf.deepio_batch: the front end of DeepIO (Zhu et al., paper 004,
// III-D), which reads a mini-batch through Forebay's storage instead of tf.data.
//
//   ForebayDeepioBatch(index_array: int64 [n]) -> uint8 [batch, element_size]
//
// Each run gives the next batch_size elements of index_array, the last of them perhaps fewer; the
// run after that is the error OutOfRange, and the one after that begins anew. Another array starts
// at its beginning. Where a run stands belongs to the resource `shared_name`, which calls of that
// name on one device (in one session) share, as do their open files.
//
// TensorFlow is compiled without exceptions: none leaves Compute().
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/elements.hpp"

namespace forebay::tf {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

constexpr const char* kContainer = "forebay";

absl::Status status_of(const ReadError& error) {
  switch (error.kind) {
    case ReadError::Kind::usage:
      return absl::InvalidArgumentError(error.what());
    case ReadError::Kind::not_found:
      return absl::NotFoundError(error.what());
    case ReadError::Kind::io:
      break;
  }
  return absl::DataLossError(error.what());
}

/// Runs `work`; what it throws becomes a status.
template <typename Work>
absl::Status caught(const Work& work) {
  try {
    work();
    return absl::OkStatus();
  } catch (const ReadError& error) {
    return status_of(error);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory for the elements of a read");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

/// Open files, and how far the present array of indices has been delivered. Thread-safe.
class Reader : public tensorflow::ResourceBase {
 public:
  explicit Reader(std::unique_ptr<Elements> elements) : elements_(std::move(elements)) {}

  std::string DebugString() const override { return "forebay.tf.deepio_batch"; }
  Elements& elements() { return *elements_; }

  /// The next `batch` places of `indices`, as first and count; count 0: all were delivered.
  std::pair<std::int64_t, std::int64_t> take(const Tensor& indices, std::int64_t batch) {
    const std::scoped_lock lock(mutex_);
    const std::int64_t size = indices.NumElements();
    if (!is_present(indices)) {
      present_ = indices;  // a reference, which keeps its memory from being used anew
      next_ = 0;
    }
    const std::int64_t first = next_;
    if (first == size) {
      next_ = 0;
      return {0, 0};
    }
    const std::int64_t count = std::min(batch, size - first);
    next_ = first + count;
    return {first, count};
  }

 private:
  bool is_present(const Tensor& indices) const {
    if (present_.dtype() != indices.dtype() || present_.NumElements() != indices.NumElements()) {
      return false;
    }
    const auto mine = present_.tensor_data();
    const auto its = indices.tensor_data();
    return mine.data() == its.data() || std::memcmp(mine.data(), its.data(), its.size()) == 0;
  }

  std::unique_ptr<Elements> elements_;
  std::mutex mutex_;
  Tensor present_;
  std::int64_t next_ = 0;
};

class DeepioBatch : public OpKernel {
 public:
  explicit DeepioBatch(OpKernelConstruction* construction) : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("batch_size", &batch_size_));
    OP_REQUIRES_OK(construction, construction->GetAttr("element_size", &element_size_));
    OP_REQUIRES_OK(construction, construction->GetAttr("count_per_read", &count_per_read_));
    OP_REQUIRES_OK(construction, construction->GetAttr("files", &files_));
    OP_REQUIRES_OK(construction, construction->GetAttr("shared_name", &shared_name_));
    if (shared_name_.empty()) shared_name_ = name();
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& indices = context->input(0);
    OP_REQUIRES(context, indices.dims() == 1,
                absl::InvalidArgumentError("index_array has not one dimension: give a list"));
    Reader* reader = nullptr;
    OP_REQUIRES_OK(context, context->resource_manager()->LookupOrCreate<Reader>(
                                kContainer, shared_name_, &reader,
                                [this](Reader** made) { return make(made); }));
    const tensorflow::core::ScopedUnref unref(reader);
    const auto taken = reader->take(indices, batch_size_);
    OP_REQUIRES(context, taken.second > 0,
                absl::OutOfRangeError("all elements of index_array were delivered: the next run "
                                      "begins anew; give the array of the next epoch"));
    Tensor* out = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({taken.second, element_size_}), &out));
    const std::int64_t* const ids = indices.flat<std::int64_t>().data() + taken.first;
    OP_REQUIRES_OK(context, caught([&] {
                     reader->elements().read(ids, static_cast<std::size_t>(taken.second),
                                             out->flat<std::uint8_t>().data(), runner(context));
                   }));
  }

 private:
  absl::Status make(Reader** made) const {
    return caught([&] {
      *made = new Reader(std::make_unique<Elements>(files_, element_size_, count_per_read_));
    });
  }

  /// TensorFlow's own threads read, several blocks at once.
  static RunAll runner(OpKernelContext* context) {
    auto* const threads = context->device()->tensorflow_cpu_worker_threads()->workers;
    return [threads](std::size_t count, const std::function<void(std::size_t)>& work) {
      constexpr std::int64_t kCost = 20'000;  // cycles: what a read takes at least
      threads->ParallelFor(static_cast<std::int64_t>(count), kCost,
                           [&work](std::int64_t begin, std::int64_t end) {
                             for (std::int64_t i = begin; i < end; ++i) {
                               work(static_cast<std::size_t>(i));
                             }
                           });
    };
  }

  std::int64_t batch_size_ = 0;
  std::int64_t element_size_ = 0;
  std::int64_t count_per_read_ = 0;
  std::vector<std::string> files_;
  std::string shared_name_;
};

absl::Status shape_of(tensorflow::shape_inference::InferenceContext* context) {
  std::int64_t element_size = 0;
  TF_RETURN_IF_ERROR(context->GetAttr("element_size", &element_size));
  tensorflow::shape_inference::ShapeHandle list;
  TF_RETURN_IF_ERROR(context->WithRank(context->input(0), 1, &list));
  context->set_output(0, context->Matrix(context->UnknownDim(), element_size));
  return absl::OkStatus();
}

REGISTER_OP("ForebayDeepioBatch")
    .Input("index_array: int64")
    .Output("mini_batch: uint8")
    .Attr("batch_size: int >= 1")
    .Attr("element_size: int >= 1")
    .Attr("count_per_read: int >= 1 = 1")
    .Attr("files: list(string) >= 1")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(shape_of)
    .Doc("The next elements of index_array, read through Forebay's storage.");

REGISTER_KERNEL_BUILDER(Name("ForebayDeepioBatch").Device(tensorflow::DEVICE_CPU), DeepioBatch);

}  // namespace
}  // namespace forebay::tf
