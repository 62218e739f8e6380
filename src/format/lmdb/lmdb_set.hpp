// The records of one tree of LMDB as a DataSet: samples in key order, keys and values where they
// lie in the pages that are read.
//
// Where records are is told by an index over leaves (leaf_index.hpp), which locate() makes together
// with others, or the first plan alone. What an index has wrong is found when bytes are unpacked;
// it is given up then, and the leaves are counted.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "format/lmdb/database.hpp"
#include "format/lmdb/leaf_index.hpp"
#include "format/lmdb/leaf_producer.hpp"
#include "format/peers.hpp"
#include "storage/bulk_reader.hpp"

namespace forebay::lmdb {

// Getting the leaves that an index is made of: from a sidecar, or by counting them together.
//
//   one peer     looks for sidecars beside the data and in the user's cache
//                -> its bytes to all peers, as other nodes may not see the same files
//   else         one peer lists the leaves, each counts its part, all exchange what they found

struct LocateOptions {
  bool trust_sidecars = true;  ///< one may tell where the leaves are
  bool may_cache = false;      ///< whether what a scan has found is kept in the user's cache
  bool was_wrong = false;      ///< so is what replaces an entry there, in any case
  std::chrono::milliseconds patience{};  ///< with peers
  /// Calls what reads without a deadline of its own, in whatever way ends that in time: it owns all
  /// that it uses. Empty: just calls it.
  std::function<void(std::function<void()>)> ask = {};
};

struct FoundLeaves {
  std::unique_ptr<LeafProducer> producer;
  std::string how;      ///< "provenance (recipe) from train.lmdb/data.mdb.forebay"
  bool cached = false;  ///< from the user's cache, where another data set may have put it
};

/// Collective over `peers`, which fail together. Sidecars that are not used are named in the log,
/// with the reason.
FoundLeaves find_leaves(const std::shared_ptr<Database>& database, BulkReader& reader,
                        const LocateOptions& options, Peers& peers);

struct LmdbSetOptions {
  LocateOptions locate;
  BulkOptions bulk;          ///< of looks at leaves by this process alone
  bool plain_asked = false;  ///< the user says that every record is a sample
  std::string note = {};     ///< to be told of that
};

struct LockedIndex;

class LmdbSet final : public DataSet {
 public:
  /// `path` as the user names it.
  LmdbSet(std::string path, Database database, LmdbSetOptions options);

  std::unique_ptr<const Plan> plan_runs(std::span<const IdRun> runs) const override;
  void keys(const KeySink& sink) const override;
  void read_one(std::uint64_t id, const RecordSink& sink) const override;
  std::string look_at_pages() const override;
  std::optional<PagesReport> check_pages(std::size_t most_faults,
                                         const RecordSink& sink) const override;
  double mean_value_bytes() const override;
  void locate(Peers& peers, BulkReader& reader) override;
  bool give_up_index(const Error& mismatch) const override;
  std::uint64_t index_bytes() const override;
  std::uint64_t used_index_bytes() const override;
  std::uint64_t stored_bytes() const override { return database_->stored_bytes(); }
  using DataSet::check_unchanged;
  void check_unchanged(std::uint32_t file) const override;
  std::string describe() const override;
  std::string info() const override;
  DecodeCounters counters() const override;

  /// Plans by `index`, which somebody else has located, until it is given up.
  void use_index(std::shared_ptr<RecordIndex> index);
  struct GivenUp {
    bool first = true;   ///< this process is the first of its node to give up this index
    bool cached = true;  ///< FoundLeaves::cached
  };
  /// Without a word in the log; nothing where there is no other way.
  std::optional<GivenUp> give_up() const;
  /// Says why, once a node: a warning where whoever has made the sidecar has to know.
  static void tell_given_up(const GivenUp& given_up, const Error& mismatch);
  /// For looks beside plans, by one thread: as long as nothing is planned.
  Database& database() const { return *database_; }

 private:
  void make_index(Peers& peers, BulkReader& reader) const;
  /// As Database::remember_records(), one, by an index that knows where it is. Under both mutexes.
  void remember_record(RecordIndex& index, std::uint64_t id) const;
  Database opened_again() const;

  std::shared_ptr<Database> database_;
  LmdbSetOptions options_;
  mutable std::mutex mutex_;  ///< of what follows
  mutable bool given_up_ = false;
  mutable std::string how_;
  mutable bool cached_ = false;
  mutable std::shared_ptr<LockedIndex> index_;
  mutable std::uint64_t index_bytes_ = 0;
  mutable int checks_ = 0;
};

}  // namespace forebay::lmdb
