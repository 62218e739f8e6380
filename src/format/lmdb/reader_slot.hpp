// Read transactions of liblmdb, and with them a place in the table of readers.
//
// liblmdb keeps state per process: closing one environment frees the reader places of every other
// environment of the same process over the same file. So readers of one process share one
// environment (shared_reader_environment), and a ReaderSlot can be asked whether it still holds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "format/lmdb/liblmdb.hpp"

namespace forebay::lmdb {

enum class Locking : std::uint8_t { if_possible, none };

/// This process's environment for reading `path`, opened at need and closed by its last user.
/// Takes part in locking when that is wanted and `path` has a usable lock file; creates none.
std::shared_ptr<const Environment> shared_reader_environment(
    const DatasetPath& path, Locking locking = Locking::if_possible);

/// Opens a database of a shared environment, for read transactions that begin afterwards.
MDB_dbi open_for_readers(const std::shared_ptr<const Environment>& environment,
                         const std::string& name);

/// A read transaction of liblmdb, held for as long as this object lives.
class ReaderSlot {
 public:
  /// A transaction over the newest state, with a place in the table of readers unless the
  /// environment does not lock. Throws io where the meta pages could not be read.
  explicit ReaderSlot(std::shared_ptr<const Environment> environment);

  /// A slot that protects its state, or none: where the lock file does not exist or cannot be
  /// written, the file system is not local to this node, or few places are left for others.
  static std::shared_ptr<const ReaderSlot> try_hold(const DatasetPath& path);

  std::uint64_t transaction() const { return transaction_.id(); }
  MDB_txn* txn() const { return transaction_.get(); }
  /// True while the table of readers lists this transaction.
  bool holds() const;
  const Environment& environment() const { return transaction_.environment(); }

 private:
  Transaction transaction_;
};

}  // namespace forebay::lmdb
