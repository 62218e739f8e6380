#include "sync/request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "core/names.hpp"

namespace forebay {
namespace {

constexpr Name<SyncOperation> kOperations[] = {
    {"allreduce", SyncOperation::allreduce}, {"broadcast", SyncOperation::broadcast},
    {"allgather", SyncOperation::allgather}, {"barrier", SyncOperation::barrier},
    {"join", SyncOperation::join},           {"close", SyncOperation::close},
};

}  // namespace

std::string_view to_string(SyncOperation operation) { return name_of(operation, kOperations); }

std::uint64_t TensorSpec::elements() const {
  std::uint64_t product = 1;
  for (const std::uint64_t extent : shape) {
    if (__builtin_mul_overflow(product, extent, &product)) {
      throw Error(ErrorKind::usage, fmt::format("tensor '{}': the shape {} has too many elements",
                                                name, describe_shape(shape)));
    }
  }
  return product;
}

std::uint64_t TensorSpec::bytes() const {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements(), std::uint64_t{size_of(type)}, &bytes)) {
    throw Error(ErrorKind::usage, fmt::format("tensor '{}': the shape {} has too many bytes", name,
                                              describe_shape(shape)));
  }
  return bytes;
}

void Request::finish() const { state->finish(); }
void Request::fail(const Error& error) const { state->fail(error); }

void SyncHandle::State::end(const std::optional<Error>& error) {
  if (ending_.exchange(true)) return;
  if (before_end) before_end(!error);
  before_end = nullptr;
  if (on_end) on_end();
  on_end = nullptr;
  const std::lock_guard lock(mutex_);
  error_ = error;
  done_.store(true, std::memory_order_release);
  changed_.notify_all();
}

bool SyncHandle::State::wait(std::optional<std::chrono::milliseconds> limit) {
  std::unique_lock lock(mutex_);
  const auto is_done = [this] { return done(); };
  if (!limit) {
    changed_.wait(lock, is_done);
  } else if (!changed_.wait_for(lock, *limit, is_done)) {
    return false;
  }
  seen_.store(true, std::memory_order_release);
  if (error_) throw Error(*error_);
  return true;
}

bool SyncHandle::State::look() {
  if (!done()) return false;
  seen_.store(true, std::memory_order_release);
  return true;
}

SyncHandle::SyncHandle(std::shared_ptr<State> state) : state_(std::move(state)) {}

bool SyncHandle::done() const { return state_ == nullptr || state_->look(); }

void SyncHandle::wait() const {
  if (state_ != nullptr) state_->wait({});
}

bool SyncHandle::wait_for(std::chrono::milliseconds limit) const {
  return state_ == nullptr || state_->wait(limit);
}

std::span<const std::byte> SyncHandle::gathered() const {
  if (state_ == nullptr || !state_->done()) return {};
  return state_->gathered;
}

std::uint64_t SyncHandle::gathered_rows() const {
  return state_ != nullptr && state_->done() ? state_->gathered_rows : 0;
}

Signature::Signature(const Request& request)
    : operation(request.operation),
      tensor(request.tensor),
      reduction(request.reduction),
      root(request.root) {}

bool Signature::operator==(const Signature& other) const {
  if (operation != other.operation || tensor.name != other.tensor.name ||
      tensor.type != other.tensor.type || root != other.root || reduction != other.reduction) {
    return false;
  }
  const auto& [mine, theirs] = std::tie(tensor.shape, other.tensor.shape);
  if (operation != SyncOperation::allgather) return mine == theirs;
  return mine.size() == theirs.size() && !mine.empty() &&
         std::equal(mine.begin() + 1, mine.end(), theirs.begin() + 1);
}

std::string describe_shape(std::span<const std::uint64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string describe(const Signature& signature) {
  const auto& [operation, tensor, reduction, root] = signature;
  const std::string of =
      fmt::format(" of {} {}", to_string(tensor.type), describe_shape(tensor.shape));
  switch (operation) {
    case SyncOperation::allreduce:
      return fmt::format("allreduce({}){}", to_string(reduction), of);
    case SyncOperation::broadcast:
      return fmt::format("broadcast from rank {}{}", root, of);
    case SyncOperation::allgather:
      return fmt::format("allgather{}", of);
    default:
      return std::string(to_string(operation));
  }
}

bool NamesOnTheWay::add(const std::string& name, const std::shared_ptr<SyncHandle::State>& state) {
  std::optional<Error> failure;
  {
    const std::lock_guard lock(mutex_);
    failure = failure_;
    if (!failure) {
      if (!names_.emplace(name, state).second) {
        throw Error(ErrorKind::usage,
                    fmt::format("tensor '{}' is started again before it is done", name),
                    "wait for its handle first, or give it another name");
      }
      state->on_end = [self = shared_from_this(), name, then = std::move(state->on_end)] {
        self->remove(name);
        if (then) then();
      };
    }
  }
  if (failure) state->fail(*failure);
  return !failure;
}

void NamesOnTheWay::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  names_.erase(name);
  if (names_.empty()) none_.notify_all();
}

void NamesOnTheWay::fail_all(const Error& error) {
  std::vector<std::shared_ptr<SyncHandle::State>> states;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = error;
    for (const auto& [name, state] : names_) states.push_back(state.lock());
  }
  for (const auto& state : states) {
    if (state != nullptr) state->fail(error);
  }
}

bool NamesOnTheWay::wait_until_none(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return none_.wait_for(lock, limit, [this] { return names_.empty(); });
}

void NamesOnTheWay::check() const {
  const std::lock_guard lock(mutex_);
  if (failure_) throw Error(*failure_);
}

std::size_t NamesOnTheWay::count() const {
  const std::lock_guard lock(mutex_);
  return names_.size();
}

}  // namespace forebay
