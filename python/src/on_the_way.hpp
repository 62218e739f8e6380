// The memory that an engine is at work on, for as long as it is.
//
//   caller    add() -> staging is filled -> the engine starts               under Python's lock
//   engine    Work::end(): staging -> array                                 without
//   caller    release(), by wait(), done(), the next call, or the end       under Python's lock
//
// The engine's thread never drops a Python object: that would need Python's lock, for which a
// thread may wait that the engine in turn waits for. It only says that it has ended.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "forebay/error.hpp"
#include "memory.hpp"
#include "module.hpp"

namespace forebay::python {

/// What the engine's thread has of one operation: no Python objects.
class Work {
 public:
  /// On `written` itself, or on a copy that goes there at the end.
  Work(const Memory& written, bool staged)
      : staged_(staged), first_(written.first()), layout_(written.layout()) {
    if (!staged) return;
    bytes_ = layout_.elements() * size_of(layout_.type);
    staging_ = std::make_unique_for_overwrite<std::byte[]>(bytes_);
  }

  bool staged() const { return staged_; }
  std::span<std::byte> staging() { return {staging_.get(), bytes_}; }
  /// Copies the result to where it belongs.
  void end(bool good) noexcept {
    if (good && staged_) scatter(staging(), first_, layout_);
    staging_ = nullptr;
    ended_.store(true, std::memory_order_release);
  }
  bool ended() const { return ended_.load(std::memory_order_acquire); }

 private:
  bool staged_;
  std::size_t bytes_ = 0;
  std::unique_ptr<std::byte[]> staging_;
  std::byte* first_;
  Layout layout_;
  std::atomic<bool> ended_ = false;
};

/// One operation. Under Python's lock, but for what the engine does with its work.
class Operation {
 public:
  Operation(std::string name, Memory read, Memory written)
      : name_(std::move(name)),
        work_(std::make_shared<Work>(written, wants_staging(read, written))),
        read_(std::move(read)),
        written_(std::move(written)),
        extent_(around(read_->extent(), written_->extent())) {}

  const std::string& name() const { return name_; }
  const std::shared_ptr<Work>& work() const { return work_; }
  /// What the engine reads and writes; a copy of what is read, once fill() was called.
  std::span<const std::byte> in() const {
    return work_->staged() ? work_->staging() : read_->bytes();
  }
  std::span<std::byte> out() const {
    return work_->staged() ? work_->staging() : written_->bytes();
  }
  /// Fills the copy, where there is one: what it is made of is free again afterwards.
  void fill() {
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
  /// Lets the arrays go, once the engine has ended.
  void release() {
    if (!work_->ended()) return;
    // Out of here before they go: Python may do anything then, also come back.
    const auto read = std::exchange(read_, std::nullopt);
    const auto written = std::exchange(written_, std::nullopt);
  }
  /// Throws usage where `later` wants to use memory that this one works on.
  void require_apart(const Operation& later, const Argument& read, const Argument& written) const {
    if (work_->ended()) return;
    require_apart(*written_, *later.written_, written);
    if (reads_) require_apart(*read_, *later.written_, written);
    require_apart(*written_, *later.read_, read);
  }
  /// All that it may use.
  const Extent& extent() const { return extent_; }

 private:
  /// Below this, giving Python's lock away costs more than it brings.
  static constexpr std::size_t kWorthUnlocking = std::size_t{64} << 10;

  /// Whether the engine cannot work on the arrays themselves: it wants plain ones, and reads parts
  /// of `in` after it has written parts of `out`.
  static bool wants_staging(const Memory& read, const Memory& written) {
    if (!read.layout().plain() || !written.layout().plain()) return true;
    const Extent in = read.extent();
    const Extent out = written.extent();
    return in.meets(out) && in != out;
  }

  static Extent around(const Extent& a, const Extent& b) {
    if (a.begin == a.end) return b;
    if (b.begin == b.end) return a;
    return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
  }

  void require_apart(const Memory& used, const Memory& wanted, const Argument& argument) const {
    if (!used.meets(wanted)) return;
    throw Error(
        ErrorKind::usage,
        fmt::format("{}: {} lies in memory that '{}' works on, which is not done", argument.call,
                    argument.name, name_),
        "wait for its handle first, or give a copy (also where they lie between each other)");
  }

  std::string name_;
  std::shared_ptr<Work> work_;
  std::optional<Memory> read_;
  std::optional<Memory> written_;
  bool reads_ = true;  ///< until it ends; where it works on a copy, until that is filled
  Extent extent_;
};

/// All operations of one engine that may not have ended. Under Python's lock. Adding one takes the
/// logarithm of their number, and a step for each whose memory is near.
class OnTheWay {
 public:
  /// Throws usage where another is at work on the same memory.
  std::shared_ptr<Operation> add(std::string name, Memory read, Memory written,
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

  /// Lets go of what has ended.
  void forget_ended() {
    std::vector<std::shared_ptr<Operation>> gone;
    std::erase_if(by_age_, [&](const ByBegin::iterator& one) {
      const bool ended = one->second->work()->ended();
      if (ended) forget(one, gone);
      return ended;
    });
    for (const auto& one : gone) one->release();
  }

 private:
  using ByBegin = std::multimap<std::uintptr_t, std::shared_ptr<Operation>>;

  static constexpr std::size_t kFew = 64;

  /// The oldest that have ended, which most have that began before others.
  void forget_oldest() {
    std::vector<std::shared_ptr<Operation>> gone;
    for (; !by_age_.empty() && by_age_.front()->second->work()->ended(); by_age_.pop_front()) {
      forget(by_age_.front(), gone);
    }
    for (const auto& one : gone) one->release();
  }

  void forget(const ByBegin::iterator& one, std::vector<std::shared_ptr<Operation>>& gone) {
    gone.push_back(std::move(one->second));
    by_begin_.erase(one);
  }

  ByBegin by_begin_;                      ///< of their extents
  std::deque<ByBegin::iterator> by_age_;  ///< the same
  std::uintptr_t longest_ = 0;            ///< extent, of those that there were
  std::size_t enough_ = 0;                ///< with more of them, all are looked at
};

}  // namespace forebay::python
