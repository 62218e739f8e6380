// RAII over liblmdb, for the three things that it is used for: writing, the baseline reader, and
// the place in the table of readers that keeps a writer from recycling the pages that we read.
//
// liblmdb reads through mappings of its own, and ends the process where a page is not what it
// should be. Both become errors here: the mappings of readers are guarded as ours are
// (storage/fault_guard.hpp), and a failed assertion throws, through frames of C that hold nothing
// but the caller's cursor or transaction.
#pragma once

#include <lmdb.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "format/lmdb/dataset_path.hpp"
#include "storage/fault_guard.hpp"

namespace forebay::lmdb {

/// Throws the Error that `code` stands for; returns when it is MDB_SUCCESS.
void check_lmdb(int code, std::string_view call, const std::string& path);

MDB_val to_val(std::span<const std::byte> bytes);
std::span<const std::byte> to_span(const MDB_val& val);

/// An open environment. Safe from many threads; a transaction is not. Calls with it, or with what
/// was made of it, throw corrupt where an assertion of liblmdb fails.
class Environment : private NonCopyable {
 public:
  struct Options {
    unsigned flags = 0;
    std::size_t map_size = 0;  ///< bytes; 0 keeps what the file says
    unsigned databases = 16;   ///< most named databases
  };
  Environment(const DatasetPath& path, const Options& options);
  ~Environment();

  MDB_env* get() const { return env_; }
  const std::string& path() const { return path_; }
  bool locks() const { return locks_; }
  std::size_t map_size() const;
  /// No transaction may be open.
  void set_map_size(std::size_t bytes);

  // Of environments that only read (MDB_RDONLY).

  /// What is mapped; empty where the system does not tell.
  std::span<const std::byte> map() const { return map_; }
  /// Throws io when an access inside of it has faulted.
  void check() const;

 private:
  void guard_mappings(const DatasetPath& path);

  MDB_env* env_ = nullptr;
  std::string data_file_;
  std::span<const std::byte> map_;
  std::optional<FaultGuard> data_guard_;
  std::optional<FaultGuard> lock_guard_;
  std::string path_;
  bool locks_ = true;
};

/// Aborts unless committed.
class Transaction : private NonCopyable {
 public:
  Transaction(std::shared_ptr<const Environment> environment, unsigned flags);
  /// Takes over one that was begun already.
  Transaction(std::shared_ptr<const Environment> environment, MDB_txn* begun)
      : environment_(std::move(environment)), txn_(begun) {}
  ~Transaction();

  MDB_txn* get() const { return txn_; }
  std::uint64_t id() const { return mdb_txn_id(txn_); }
  const Environment& environment() const { return *environment_; }
  /// Returns liblmdb's code: a full map is no error to the writer.
  int commit();
  /// Opens the main (empty name) or a named database.
  MDB_dbi open_database(const std::string& name, unsigned flags);

 private:
  std::shared_ptr<const Environment> environment_;
  MDB_txn* txn_ = nullptr;
};

}  // namespace forebay::lmdb
