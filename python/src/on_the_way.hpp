// The memory that an engine is at work on, for as long as it is.
//
//   caller    add() -> staging is filled -> the engine starts               under Python's lock
//   engine    Work::end(): staging -> array                                 without
//   caller    release(), by wait(), done(), the next call, or the end       under Python's lock
//
// The engine's thread never drops a Python object: that would need Python's lock, for which a
// thread may wait that the engine in turn waits for. It only says that it has ended.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "memory.hpp"

namespace forebay::python {

/// What the engine's thread has of one operation: no Python objects.
class Work {
 public:
  /// On `written` itself, or on a copy that goes there at the end.
  Work(const Memory& written, bool staged);

  bool staged() const { return staged_; }
  std::span<std::byte> staging() { return {staging_.get(), bytes_}; }
  /// Copies the result to where it belongs.
  void end(bool good) noexcept;
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
  Operation(std::string name, Memory read, Memory written);

  const std::string& name() const { return name_; }
  const std::shared_ptr<Work>& work() const { return work_; }
  /// What the engine reads and writes; a copy of what is read, once fill() was called.
  std::span<const std::byte> in() const;
  std::span<std::byte> out() const;
  /// Fills the copy, where there is one: what it is made of is free again afterwards.
  void fill();
  /// Lets the arrays go, once the engine has ended.
  void release();
  /// Throws usage where `later` wants to use memory that this one works on.
  void require_apart(const Operation& later, const Argument& read, const Argument& written) const;
  /// All that it may use.
  const Extent& extent() const { return extent_; }

 private:
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
                                 const Argument& reads, const Argument& writes);
  /// Lets go of what has ended.
  void forget_ended();

 private:
  using ByBegin = std::multimap<std::uintptr_t, std::shared_ptr<Operation>>;

  /// The oldest that have ended, which most have that began before others.
  void forget_oldest();
  void forget(const ByBegin::iterator& one, std::vector<std::shared_ptr<Operation>>& gone);

  ByBegin by_begin_;                      ///< of their extents
  std::deque<ByBegin::iterator> by_age_;  ///< the same
  std::uintptr_t longest_ = 0;            ///< extent, of those that there were
  std::size_t enough_ = 0;                ///< with more of them, all are looked at
};

}  // namespace forebay::python
