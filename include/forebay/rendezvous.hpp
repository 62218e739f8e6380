// Where ranks that are connected without MPI find each other: a place where each leaves a few short
// texts that the others read. torchrun's store is one, a common folder or a TCP server are others.
//
// What is left there lets its readers into the job: see docs/network.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace forebay {

/// Used by one thread at a time. Derive from it for a store that exists already.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// No key and no value is longer than this; keys are letters, digits, '.', '-' and '_'.
  static constexpr std::size_t kLongestKey = 200;
  static constexpr std::size_t kLongestValue = std::size_t{64} << 10;

  /// Leaves `value` under `key`, in the place of what was there. Throws io or communication.
  virtual void set(const std::string& key, std::span<const std::byte> value) = 0;
  /// What was left under `key`, by any rank; waits for it, at most `limit` (0: only looks). Nothing
  /// where it is not there by then. Throws io or communication.
  virtual std::optional<std::vector<std::byte>> get(const std::string& key,
                                                    std::chrono::milliseconds limit) = 0;
  /// Takes away what was left, if it is still there. May do nothing; throws nothing.
  virtual void erase(const std::string& key) noexcept { static_cast<void>(key); }
  /// The host where the values are, name or address: ranks listen on the interface over which they
  /// reach it. Empty where there is no such host.
  virtual std::string host() const { return {}; }
};

/// A folder on a file system that all ranks see (also NFS), in which nobody else may write. Throws
/// io where there is none.
std::unique_ptr<Rendezvous> file_rendezvous(const std::string& folder);

/// This rank keeps the values, in its memory, for as long as the object lives: until
/// connect_ranks() has returned is enough. Listens at `host`, name or address of an interface of
/// this one, and `port`; 0: one that the system chooses, and that `port` then is. Throws
/// communication.
std::unique_ptr<Rendezvous> serve_rendezvous(const std::string& host, std::uint16_t& port);
/// Another rank keeps them, at this address, now or soon. Throws communication for an unknown host.
std::unique_ptr<Rendezvous> join_rendezvous(const std::string& host, std::uint16_t port);

}  // namespace forebay
