// RAII over liblmdb, for the three things that it is used for: writing, the baseline reader, and
// the place in the table of readers that keeps a writer from recycling the pages that we read.
#pragma once

#include <lmdb.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "format/lmdb/dataset_path.hpp"

namespace forebay::lmdb {

/// Throws the Error that `code` stands for; returns when it is MDB_SUCCESS.
void check_lmdb(int code, std::string_view call, const std::string& path);

MDB_val to_val(std::span<const std::byte> bytes);
std::span<const std::byte> to_span(const MDB_val& val);

/// An open environment. Safe from many threads; a transaction is not.
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

 private:
  MDB_env* env_ = nullptr;
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
