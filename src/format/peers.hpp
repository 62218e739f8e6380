// The processes that open one data set together, so that each looks at a part of its files only:
// the roots of a loader. Formats see of them what this page says, and know nothing of MPI.
//
//   part        each looks at its part of the files             in together()
//   exchange    what each has found, as bytes                   told_by()
//   keep        what is large lies once in a node's memory      share()
//
// All methods are collective: every peer calls them in the same order, from one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/non_copyable.hpp"

namespace forebay {

/// Zeros at first, and sparse where nothing is written.
struct PeerMemory {
  std::span<std::byte> bytes;
  /// Called before [offset, offset + size) is written for the first time; may be empty.
  std::function<void(std::size_t offset, std::size_t size)> reserve;
  std::shared_ptr<void> owner;  ///< keeps it
};

class Peers : private NonCopyable {
 public:
  virtual ~Peers() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Calls `step` on every peer; where it throws an Error on any, all throw that of the first.
  /// Whatever may fail on one peer alone belongs into it, so that nobody waits for who has left.
  virtual void together(const std::function<void()>& step) = 0;
  /// The bytes of peer `from`, on all.
  virtual std::string told_by(int from, const std::string& bytes) = 0;
  /// Memory of all peers of this node.
  virtual PeerMemory share(std::uint64_t bytes) = 0;

  /// Begin and end of this peer's part of `count` things that lie one behind the other.
  struct Part {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  Part part_of(std::uint64_t count) const {
    const auto me = static_cast<std::uint64_t>(rank()), all = static_cast<std::uint64_t>(size());
    const std::uint64_t each = count / all, more = count % all;
    const auto begin = [&](std::uint64_t i) { return each * i + std::min(i, more); };
    return {begin(me), begin(me + 1)};
  }
};

/// One process without others; the memory that it shares is its own, also after a fork.
Peers& no_peers();

}  // namespace forebay
