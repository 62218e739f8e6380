// Many reads at once: how the requests of a window get their bytes.
//
//   pread   the requests one after another, or by a few threads
//   mmap    copies out of a mapping
//   uring   many requests in flight from one thread (io_uring), optionally past the page cache
//
// A BulkReader belongs to one thread. It never writes outside of the spans that it was given, and
// after read(), finish() or cancel() has returned or thrown it does not write into them any more.
// The one exception is a file system that never answers: only a reader with a timeout or a stop
// token gives up on it, and abandoned() then says that the spans are lost.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "core/non_copyable.hpp"
#include "core/placement.hpp"
#include "core/private_memory.hpp"
#include "forebay/storage.hpp"

namespace forebay {

/// Fills `into` whole from `offset`.
struct ReadRequest {
  std::uint64_t offset = 0;
  std::span<std::byte> into;
};

struct BulkOptions {
  /// Requests in flight at once; 0 = what suits the engine.
  unsigned depth = 0;
  /// Longer requests are split into reads of this size; 0 = what suits the engine.
  std::uint64_t request_bytes = 0;
  /// Small requests at random places: more of them in flight, and the system is told to read
  /// nothing ahead.
  bool scattered = false;
  /// Large reads that lie apart: the system need not read ahead.
  bool apart = false;
  /// Past the page cache (O_DIRECT), where offset, length and address allow it; uring only.
  bool direct = false;
  /// Longest time in which no request at all is answered; 0 = wait for ever. With threads of their
  /// own or io_uring engines keep it; mmap leaves that to with_answers() (storage/answers.hpp).
  std::chrono::milliseconds timeout{0};
  /// Asked to stop, read() throws cancelled within about a second; not kept by mmap either.
  std::stop_token stop = {};
  /// Of threads that an engine starts.
  Placement placement = {};
};

/// What was asked of the operating system; the mmap engine counts its copies.
struct BulkCounters {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
};

class BulkReader : private NonCopyable {
 public:
  /// Called in the reading thread once request number `index` is complete; requests may complete
  /// in any order. May throw: reading ends and the exception leaves finish().
  using Done = std::function<void(std::size_t index)>;

  /// Cancels what was started.
  virtual ~BulkReader() = default;

  /// Begins to read, as far as the engine can do so behind the caller's back, which has other work
  /// to do meanwhile. `requests` stay where they are until finish() or cancel(), one of which comes
  /// before the next start(). Throws io for impossible offsets.
  virtual void start(std::span<const ReadRequest> requests) = 0;
  /// Returns when all that was started is complete. Throws io naming file and offset (the first
  /// failure wins; whatever else was in flight has ended), cancelled after a stop, or what `done`
  /// threw. The reader may be used again after an error, unless abandoned().
  virtual void finish(const Done& done) = 0;
  /// Lets what was started go on, without waiting: for the caller to call now and then beside its
  /// other work, where an engine has no threads of its own. Throws as finish().
  virtual void advance() {}
  /// Ends what was started, if anything, without finishing it.
  virtual void cancel() noexcept = 0;

  void read(std::span<const ReadRequest> requests, const Done& done) {
    start(requests);
    finish(done);
  }

  virtual BulkCounters counters() const = 0;
  /// True once requests were left behind that got no answer. They may still write into their
  /// spans at any time: their memory must stay mapped and unused until the process ends. Every
  /// later start() throws io.
  virtual bool abandoned() const = 0;
  /// "uring, 32 in flight of 1 MiB, past the page cache": for explain().
  virtual std::string describe() const = 0;
};

/// Whether a reader of this thread was ever abandoned(), whatever its engine. The kernel makes such
/// a thread wait for its requests of io_uring when it ends.
bool left_requests_here() noexcept;
/// Calls `read`, which reads into `memory`: that stays where late answers may still come into it.
template <typename Read>
void read_into(PrivateMemory& memory, Read read) {
  try {
    read();
  } catch (...) {
    if (left_requests_here()) memory.abandon();
    throw;
  }
}
/// For readers that give up.
void note_left_requests() noexcept;

/// The reader of `engine` for `file`, which it keeps open. Local; starts threads or makes a ring,
/// so keep it for many reads. Throws unsupported when the engine cannot read this file or does not
/// exist here.
std::unique_ptr<BulkReader> make_bulk_reader(std::shared_ptr<const File> file, Engine engine,
                                             const BulkOptions& options);

/// What `auto` reads a file with, and why, in a few words for explain().
struct EngineChoice {
  Engine engine = Engine::pread;
  std::string reason;
};

/// Chooses between uring and pread by what the system offers and by the file system; both can be
/// used on a file opened with any engine. On local devices a few threads copy faster out of the
/// page cache than io_uring's workers do (docs/results/engines.md); `scattered` reads of a device
/// need more in flight than threads are for. Says through the log, once in a process, when io_uring
/// is wanted and not available. Local; makes and drops a ring, so ask once a file.
EngineChoice choose_engine(const File& file, bool scattered = false);

}  // namespace forebay
