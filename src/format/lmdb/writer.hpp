// Writing an LMDB database through liblmdb, with a map that grows by itself.
//
//   put, put, ... put      collected in a batch of commit_every records, then
//   one transaction        begin, mdb_put each, commit
//   MDB_MAP_FULL           abort, double the map, write the batch again
//
// So a caller never sees the map's limit, and what is on disk is always whole batches in order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/non_copyable.hpp"
#include "format/lmdb/liblmdb.hpp"

namespace forebay::lmdb {

struct WriterOptions {
  /// Records a transaction. Small values keep an interrupted run short of little but cost a sync
  /// each and scatter pages. The batch is kept in memory. 0: only commit() commits.
  std::uint64_t commit_every = 1000;
  /// Bytes of the map at the start; it doubles at need. The file itself only grows as it is filled.
  std::size_t map_size = std::size_t{64} << 20;
  /// Waits at each commit until the data are on the device. Without it a crash of the machine (not
  /// of the process) may damage the database.
  bool sync = true;
  /// Write into DEST itself as a single file (MDB_NOSUBDIR) instead of a directory with data.mdb.
  bool single_file = false;
  /// Keys come in ascending order, which packs pages fully (MDB_APPEND).
  bool append = false;
  /// Keys are native integers of 4 or 8 bytes (MDB_INTEGERKEY).
  bool integer_keys = false;
  /// The named database to write to; empty: the main one.
  std::string name;
};

/// Local, one thread at a time. After an error the batch is lost, and what was committed stays.
class Writer : private NonCopyable {
 public:
  /// Opens or creates the database at `destination`, creating the directory. Several writers wait
  /// for each other. Throws io, usage, corrupt, unsupported.
  Writer(const std::string& destination, const WriterOptions& options);
  /// Drops what was not committed.
  ~Writer();

  /// Stores `value` under `key`, over an earlier value. Copies both. Commits when the batch is
  /// full.
  void put(std::span<const std::byte> key, std::span<const std::byte> value);
  /// Removes `key`; nothing happens when it is not there.
  void erase(std::span<const std::byte> key);
  /// Commits what was put so far.
  void commit();
  /// Records that are committed.
  std::uint64_t entries();
  /// The key of the last committed record in key order, to resume behind; empty when none.
  std::vector<std::byte> last_key();
  /// The value of a committed record; empty and false when it is not there.
  bool find(std::span<const std::byte> key, std::vector<std::byte>& value);

 private:
  struct Change {
    std::size_t key_size = 0;
    std::size_t value_size = 0;
    bool erase = false;
  };

  void add(std::span<const std::byte> key, std::span<const std::byte> value, bool erase);
  void open_database();
  void refuse_other_kind(Transaction& transaction) const;
  int try_commit();
  void drop_batch();
  int apply(Transaction& transaction);
  [[noreturn]] void refuse_key(int code, const Change& change, std::size_t offset) const;

  WriterOptions options_;
  DatasetPath path_;
  std::shared_ptr<Environment> environment_;
  MDB_dbi dbi_ = 0;
  std::vector<Change> changes_;
  std::vector<std::byte> bytes_;  ///< key and value of each change, one after the other
};

}  // namespace forebay::lmdb
