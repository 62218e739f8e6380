// What the run was: per server, per client, and what the daemon itself cost.
//
// to_json() is one object:
//
//   active_seconds   from the first request after reset() to the last answer
//   cpu_seconds, cpu_share, void
//                    the daemon's, in that time; share of all cores. Above 0.6 the daemon competes
//                    with what is measured, and the run is void
//   late_seconds {mean, max}
//                    how much after their modelled time answers left; the model's own error
//   servers []       requests, bytes, seeks, ahead_bytes, memory_bytes, busy_seconds,
//                    queued_seconds, sizes {"4096": n, ...}: n requests of 4096 to 8191 bytes
//   clients []       the same by mount, as its reads caused it (a read may occupy several servers;
//                    requests, bytes and sizes are the reads'), with `mount`, `metadata` (lookups,
//                    attributes, opens: free of charge in the model) and `failed` (reads)
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pfs/model.hpp"

namespace forebay::pfs {

/// Thread-safe; local.
class Meter {
 public:
  /// One client for each mount, in this order.
  explicit Meter(std::vector<std::string> mounts);

  void count_metadata(std::size_t client);
  void count_read(std::size_t client, const Answer& answer, std::int64_t now_ns);
  /// `due_ns`: when the answer should have left.
  void count_answer(std::size_t client, bool failed, std::int64_t due_ns, std::int64_t now_ns);

  /// Counts start again. Requests in flight count half: call it when nobody reads.
  void reset();
  nlohmann::json to_json(const std::vector<Tally>& servers) const;

 private:
  struct Client {
    std::string mount;
    std::uint64_t metadata = 0;
    std::uint64_t failed = 0;
    Tally reads;
  };

  mutable std::mutex mutex_;
  std::vector<Client> clients_;
  std::int64_t first_ns_ = 0;  ///< 0: no request yet
  std::int64_t last_ns_ = 0;
  double cpu_before_;
  double late_sum_ = 0;
  double late_max_ = 0;
  std::uint64_t answers_ = 0;
};

}  // namespace forebay::pfs
