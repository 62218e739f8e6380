// Memory of every rank that all other ranks read from: what the exchange of samples is made of.
//
//   node A                      node B
//   | rank 0 | rank 1 |         | rank 2 | rank 3 |      one segment of shared memory a node, with
//        ^       ^                  ^                    the part of each of its ranks
//        |       +--- direct(1): plain loads, for the ranks of node A
//        +------------- RemoteReader: for all others
//
// Between nodes there are two ways, and which of them works, and which is faster, depends on the
// library and the network: reading without the owner's help (MPI_Get), or asking the owner, whose
// progress thread answers. Neither MPI library moves much for a rank that is outside MPI, so either
// way RemoteReader::serve() has to be called again and again on every rank: by the progress thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "comm/waiting.hpp"
#include "core/non_copyable.hpp"
#include "forebay/communicator.hpp"

namespace forebay {

/// How bytes of another node get here; two_sided_short: by messages of a few kilobytes.
enum class Transport : std::uint8_t { one_sided, two_sided, two_sided_short };

constexpr const char* to_string(Transport transport) {
  switch (transport) {
    case Transport::one_sided:
      return "one_sided";
    case Transport::two_sided:
      return "two_sided";
    case Transport::two_sided_short:
      return "two_sided_short";
  }
  return "";
}

/// A part of one rank's memory, and where it is to go: at most kLongestMessage (messages.hpp)
/// bytes.
struct RemotePiece {
  int owner = 0;
  std::uint64_t offset = 0;  ///< bytes from the start of the owner's memory
  std::span<std::byte> to;
};

/// Reads pieces by one transport. start() and finish() belong to one thread at a time, serve() may
/// run beside them in another one. Ends on all ranks at about the same time, when nobody reads any
/// more.
class RemoteReader : private NonCopyable {
 public:
  virtual ~RemoteReader() = default;

  /// Begins to read pieces, sorted by owner and inside the owners' memories. What they point to may
  /// be written from now until finish() returns. Waits for nothing. Local.
  virtual void start(std::span<const RemotePiece> pieces) = 0;
  /// Waits until all pieces are there, without burning a core. Throws what the policy's interrupt
  /// throws, and communication past its timeout, which counts from the last bytes that came. Then
  /// the object reads nothing more, and unless quiet(), MPI may still write into the pieces.
  virtual void finish(const WaitPolicy& policy) = 0;
  /// Keeps the memory of this rank readable for the others; tells whether there was work.
  virtual bool serve() = 0;
  /// Whether nothing is written any more into pieces, also after finish() has thrown.
  virtual bool quiet() const = 0;
};

/// This rank's view of all memories. Made by Communicator::expose(). Destruction: all ranks at
/// about the same time, or the memory stays until MPI ends.
class RemoteMemory : private NonCopyable {
 public:
  virtual ~RemoteMemory() = default;

  /// The first kBackedBytes of it are there; what comes after them may have to be reserved.
  virtual std::span<std::byte> mine() const = 0;
  /// Makes sure that [offset, offset + size) of mine() is backed by memory before it is touched.
  /// Local. Throws io with the needed and the free bytes.
  virtual void reserve(std::size_t, std::size_t) {}
  static constexpr std::size_t kBackedBytes = std::size_t{256} << 10;
  /// The memory of `rank` where this process can address it: its node's. Else empty.
  virtual std::span<const std::byte> direct(int rank) const = 0;
  virtual std::uint64_t bytes(int rank) const = 0;
  /// Whether any two ranks are on different nodes, so that a reader is needed.
  virtual bool several_nodes() const = 0;
  /// Makes what this rank has written visible to readers that begin after a barrier that follows.
  /// Local.
  virtual void publish() = 0;
  /// Null, on all ranks, where that transport is not to be had; `why` tells. Collective.
  virtual std::unique_ptr<RemoteReader> make_reader(Transport transport, std::string& why) = 0;
  /// Where the memory is from, in words.
  virtual std::string describe() const = 0;
};

}  // namespace forebay
