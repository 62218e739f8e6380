#include "on_the_way.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "forebay/error.hpp"
#include "module.hpp"

namespace forebay::python {
namespace {

/// Below this, giving Python's lock away costs more than it brings.
constexpr std::size_t kWorthUnlocking = std::size_t{64} << 10;

constexpr std::size_t kFew = 64;

/// Whether the engine cannot work on the arrays themselves: it wants plain ones, and reads parts of
/// `in` after it has written parts of `out`.
bool wants_staging(const Memory& read, const Memory& written) {
  if (!read.layout().plain() || !written.layout().plain()) return true;
  const Extent in = read.extent();
  const Extent out = written.extent();
  return in.meets(out) && in != out;
}

Extent around(const Extent& a, const Extent& b) {
  if (a.begin == a.end) return b;
  if (b.begin == b.end) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

void require_apart(const Memory& used, const std::string& user, const Memory& wanted,
                   const Argument& argument) {
  if (!used.meets(wanted)) return;
  throw Error(ErrorKind::usage,
              fmt::format("{}: {} lies in memory that '{}' works on, which is not done",
                          argument.call, argument.name, user),
              "wait for its handle first, or give a copy (also where they lie between each other)");
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
      extent_(around(read_->extent(), written_->extent())) {}

std::span<const std::byte> Operation::in() const {
  return work_->staged() ? work_->staging() : read_->bytes();
}

std::span<std::byte> Operation::out() const {
  return work_->staged() ? work_->staging() : written_->bytes();
}

void Operation::fill() {
  if (!work_->staged()) return;
  const std::span<std::byte> staging = work_->staging();
  if (staging.size() < kWorthUnlocking) {
    gather(read_->first(), read_->layout(), staging);
  } else {
    const Unlocked meanwhile;
    gather(read_->first(), read_->layout(), staging);
  }
  reads_ = false;
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
  python::require_apart(*written_, name_, *later.written_, written);
  if (reads_) python::require_apart(*read_, name_, *later.written_, written);
  python::require_apart(*written_, name_, *later.read_, read);
}

std::shared_ptr<Operation> OnTheWay::add(std::string name, Memory read, Memory written,
                                         const Argument& reads, const Argument& writes) {
  forget_oldest();
  if (by_age_.size() > enough_) {
    forget_ended();
    enough_ = 2 * by_age_.size() + kFew;
  }
  auto operation =
      std::make_shared<Operation>(std::move(name), std::move(read), std::move(written));
  const Extent& extent = operation->extent();
  const std::uintptr_t first = extent.begin > longest_ ? extent.begin - longest_ : 0;
  for (auto near = by_begin_.lower_bound(first);
       near != by_begin_.end() && near->first < extent.end; ++near) {
    near->second->require_apart(*operation, reads, writes);
  }
  longest_ = std::max(longest_, extent.end - extent.begin);
  by_age_.push_back(by_begin_.emplace(extent.begin, operation));
  return operation;
}

void OnTheWay::forget(const ByBegin::iterator& one, std::vector<std::shared_ptr<Operation>>& gone) {
  gone.push_back(std::move(one->second));
  by_begin_.erase(one);
}

void OnTheWay::forget_oldest() {
  std::vector<std::shared_ptr<Operation>> gone;
  for (; !by_age_.empty() && by_age_.front()->second->work()->ended(); by_age_.pop_front()) {
    forget(by_age_.front(), gone);
  }
  for (const auto& one : gone) one->release();
}

void OnTheWay::forget_ended() {
  std::vector<std::shared_ptr<Operation>> gone;
  std::erase_if(by_age_, [&](const ByBegin::iterator& one) {
    const bool ended = one->second->work()->ended();
    if (ended) forget(one, gone);
    return ended;
  });
  for (const auto& one : gone) one->release();
}

}  // namespace forebay::python
