// Getting the leaves that an index is made of: from a sidecar, or by counting them together.
//
//   one peer     looks for sidecars beside the data and in the user's cache
//                -> its bytes to all peers, as other nodes may not see the same files
//   else         one peer lists the leaves, each counts its part, all exchange what they found
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "format/lmdb/database.hpp"
#include "format/lmdb/leaf_producer.hpp"
#include "format/peers.hpp"
#include "storage/bulk_reader.hpp"

namespace forebay::lmdb {

struct LocateOptions {
  bool trust_sidecars = true;  ///< one may tell where the leaves are
  bool may_cache = false;      ///< whether what a scan has found is kept in the user's cache
  std::chrono::milliseconds patience{};  ///< with peers
  /// Calls what reads without a deadline of its own, in whatever way ends that in time: it owns all
  /// that it uses. Empty: just calls it.
  std::function<void(std::function<void()>)> ask = {};
};

struct FoundLeaves {
  std::unique_ptr<LeafProducer> producer;
  std::string how;  ///< "provenance (recipe) from train.lmdb/data.mdb.forebay"
};

/// Collective over `peers`, which fail together. Sidecars that are not used are named in the log,
/// with the reason.
FoundLeaves find_leaves(const std::shared_ptr<Database>& database, BulkReader& reader,
                        const LocateOptions& options, Peers& peers);

}  // namespace forebay::lmdb
