#include "on_the_way.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "forebay/error.hpp"
#include "unlocked.hpp"

namespace forebay::python {
namespace {

/// Below this, giving Python's lock away costs more than it brings.
constexpr std::size_t kWorthUnlocking = std::size_t{64} << 10;

/// Whether the engine cannot work on the arrays themselves: it wants plain ones, and reads parts of
/// `in` after it has written parts of `out`.
bool wants_staging(const Memory& read, const Memory& written) {
  if (!read.layout().plain() || !written.layout().plain()) return true;
  const Extent in = read.extent();
  const Extent out = written.extent();
  return in.meets(out) && in != out;
}

void require_apart(const Extent& used, const std::string& user, const Extent& wanted,
                   const Argument& argument) {
  if (!used.meets(wanted)) return;
  throw Error(ErrorKind::usage,
              fmt::format("{}: {} lies in memory that '{}' works on, which is not done",
                          argument.call, argument.name, user),
              "wait for its handle first, or give a copy");
}

}  // namespace

Work::Work(const Memory& written, bool staged)
    : staged_(staged), first_(written.first()), layout_(written.layout()) {
  if (!staged) return;
  bytes_ = layout_.elements() * size_of(layout_.type);
  staging_ = std::make_unique_for_overwrite<std::byte[]>(bytes_);
}

void Work::end(bool good) noexcept {
  if (good && staged_) scatter(staging(), first_, layout_);
  staging_ = nullptr;
  ended_.store(true, std::memory_order_release);
}

Operation::Operation(std::string name, Memory read, Memory written)
    : name_(std::move(name)),
      work_(std::make_shared<Work>(written, wants_staging(read, written))),
      read_(std::move(read)),
      written_(std::move(written)),
      source_(read_->extent()),
      reads_(work_->staged() ? Extent{} : source_),
      writes_(written_->extent()) {}

std::span<const std::byte> Operation::in() const {
  return work_->staged() ? work_->staging() : read_->bytes();
}

std::span<std::byte> Operation::out() const {
  return work_->staged() ? work_->staging() : written_->bytes();
}

void Operation::fill() {
  if (!work_->staged()) return;
  const std::span<std::byte> staging = work_->staging();
  std::optional<Unlocked> meanwhile;
  if (staging.size() >= kWorthUnlocking) meanwhile.emplace();
  gather(read_->first(), read_->layout(), staging);
}

void Operation::release() {
  if (!work_->ended()) return;
  // Out of here before they go: Python may do anything then, also come back.
  const auto read = std::exchange(read_, std::nullopt);
  const auto written = std::exchange(written_, std::nullopt);
}

void Operation::require_apart(const Operation& later, const Argument& read,
                              const Argument& written) const {
  if (work_->ended()) return;
  python::require_apart(writes_, name_, later.writes_, written);
  python::require_apart(reads_, name_, later.writes_, written);
  python::require_apart(writes_, name_, later.source_, read);
}

std::shared_ptr<Operation> OnTheWay::add(std::string name, Memory read, Memory written,
                                         const Argument& reads, const Argument& writes) {
  forget_ended();
  auto operation =
      std::make_shared<Operation>(std::move(name), std::move(read), std::move(written));
  for (const auto& other : operations_) other->require_apart(*operation, reads, writes);
  operations_.push_back(operation);
  return operation;
}

void OnTheWay::forget_ended() {
  const auto ended = std::stable_partition(operations_.begin(), operations_.end(),
                                           [](const auto& one) { return !one->work()->ended(); });
  std::vector<std::shared_ptr<Operation>> gone(std::make_move_iterator(ended),
                                               std::make_move_iterator(operations_.end()));
  operations_.erase(ended, operations_.end());
  for (const auto& one : gone) one->release();
}

}  // namespace forebay::python
