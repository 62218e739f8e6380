// Getting the index that all roots read by: from a sidecar, or by counting the leaves together.
//
//   one root     looks for sidecars beside the data and in the user's cache
//                -> its bytes to all roots, as other nodes may not see the same files
//   else         one root lists the leaves, each root counts its part, all exchange what they found
//   each node    one sparse piece of shared memory, into which its roots expand what they need
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "forebay/communicator.hpp"
#include "forebay/options.hpp"
#include "format/lmdb/database.hpp"
#include "format/lmdb/leaf_producer.hpp"
#include "format/record_index.hpp"
#include "storage/bulk_reader.hpp"

namespace forebay {

/// Who locates, and what with. `database` and `reader` are those of this root; null on other ranks.
struct LocateContext {
  Communicator& world;  ///< all ranks
  Communicator& node;   ///< those that share the memory of an index; its rank 0 is a root
  Communicator& roots;  ///< all roots on a root, anything else elsewhere
  lmdb::Database* database = nullptr;
  BulkReader* reader = nullptr;
  Locate locate = Locate::provenance;
  bool may_cache = false;  ///< whether what a scan has found is kept in the user's cache
  std::chrono::milliseconds timeout{};
  /// Calls what reads without a deadline of its own, in whatever way ends that in time: it has to
  /// own all that it uses but `database`. Empty: just calls it.
  std::function<void(std::function<void()>)> ask = {};
};

struct Located {
  std::shared_ptr<SharedMemory> memory;  ///< of the index; outlives it
  std::unique_ptr<RecordIndex> index;    ///< null on ranks that do not read
  std::string how;                       ///< "recipe train.lmdb/data.mdb.forebay"; on roots only
};

/// Collective over `world`; all ranks fail together. Sidecars that are not used are named in the
/// log, with the reason.
Located locate_records(const LocateContext& context);

/// The leaves from a sidecar, if one is there and `trust` says so, else by a scan of this process
/// alone, which `may_cache` keeps in the user's cache. Local.
std::unique_ptr<lmdb::LeafProducer> find_leaves_alone(lmdb::Database& database, bool trust,
                                                      bool may_cache);

/// The same by a scan of one root alone, for when an index has turned out to be wrong. Local.
std::unique_ptr<RecordIndex> scan_alone(lmdb::Database& database, BulkReader& reader);

}  // namespace forebay
