// The public side: arguments are checked here, in the caller's thread.
#include "forebay/sync.hpp"

#include <fmt/format.h>

#include <utility>

#include "sync/engine.hpp"

namespace forebay {
namespace {

void check_name(const std::string& name) {
  constexpr std::size_t kLongestName = 4096;
  if (!name.empty() && name.size() <= kLongestName && !name.starts_with("forebay:")) return;
  throw Error(ErrorKind::usage,
              fmt::format("'{}' is no name for a tensor", printable_key(std::as_const(name))),
              "names have 1 to 4096 characters and do not begin with 'forebay:'");
}

void check_bytes(const TensorSpec& tensor, std::size_t given, std::string_view what) {
  const std::uint64_t bytes = tensor.bytes();
  if (given == bytes) return;
  throw Error(ErrorKind::usage,
              fmt::format("tensor '{}': {} has {} bytes, {} {} has {}", tensor.name, what, given,
                          to_string(tensor.type), describe_shape(tensor.shape), bytes),
              "give memory of the tensor's own size");
}

Request sum_request(const TensorSpec& tensor, std::span<const std::byte> in,
                    std::span<std::byte> out, Reduction reduction) {
  check_name(tensor.name);
  check_bytes(tensor, in.size(), "the input");
  check_bytes(tensor, out.size(), "the output");
  return {.operation = SyncOperation::allreduce,
          .tensor = tensor,
          .reduction = reduction,
          .in = in,
          .out = out};
}

}  // namespace

SyncEngine::SyncEngine(const std::shared_ptr<Communicator>& comm, SyncOptions options)
    : implementation_(std::make_unique<Implementation>(comm, std::move(options))),
      ranks_(comm->size()) {}

SyncEngine::~SyncEngine() = default;

SyncHandle SyncEngine::allreduce(const TensorSpec& tensor, std::span<const std::byte> in,
                                 std::span<std::byte> out, Reduction reduction, SyncEnd end) {
  Request request = sum_request(tensor, in, out, reduction);
  request.end = std::move(end);
  return implementation_->start(std::move(request));
}

SyncHandle SyncEngine::allreduce(const TensorSpec& tensor, std::span<const std::byte> in,
                                 std::span<std::byte> out, Reduction reduction, OnDevice device) {
  return implementation_->start_on_device(sum_request(tensor, in, out, reduction), device.stream);
}

SyncHandle SyncEngine::broadcast(const TensorSpec& tensor, std::span<std::byte> data, int root,
                                 SyncEnd end) {
  check_name(tensor.name);
  check_bytes(tensor, data.size(), "the memory");
  if (root < 0 || root >= ranks_) {
    throw Error(ErrorKind::usage,
                fmt::format("tensor '{}': there is no rank {}", tensor.name, root),
                fmt::format("choose a root from 0 to {}", ranks_ - 1));
  }
  return implementation_->start({.operation = SyncOperation::broadcast,
                                 .tensor = tensor,
                                 .root = root,
                                 .in = data,
                                 .out = data,
                                 .end = std::move(end)});
}

SyncHandle SyncEngine::allgather(const TensorSpec& tensor, std::span<const std::byte> in) {
  check_name(tensor.name);
  check_bytes(tensor, in.size(), "the input");
  if (tensor.shape.empty()) {
    throw Error(ErrorKind::usage, fmt::format("tensor '{}': one number has no rows", tensor.name),
                "gather it with the shape [1]");
  }
  return implementation_->start(
      {.operation = SyncOperation::allgather, .tensor = tensor, .in = in});
}

SyncHandle SyncEngine::barrier(const std::string& name) {
  check_name(name);
  return implementation_->start({.operation = SyncOperation::barrier, .tensor = {.name = name}});
}

SyncHandle SyncEngine::join() { return implementation_->join(); }

void SyncEngine::end_step() { implementation_->end_step(); }

void SyncEngine::use_graph(const Graph& graph, std::span<const std::string> fetches) {
  implementation_->use_graph(graph, fetches);
}

void SyncEngine::fail(const Error& error) { implementation_->fail(error); }

void SyncEngine::check() const { implementation_->check(); }

SyncStatistics SyncEngine::statistics() const { return implementation_->statistics(); }

std::string SyncEngine::explain() const { return implementation_->explain(); }

void SyncEngine::close() { implementation_->close(); }

}  // namespace forebay
