#include "format/lmdb/reader_slot.hpp"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

namespace forebay::lmdb {
namespace {

/// Environments of this process by (process, device, inode, locking): what liblmdb's locks hang
/// on. The process is part of the key because a forked child must not use its parent's environment.
/// Opening and closing happen under the mutex: a close frees the places of an environment that was
/// opened meanwhile.
struct ReaderRegistry {
  using Key = std::array<std::uint64_t, 4>;
  struct Entry {
    std::unique_ptr<const Environment> environment;
    std::size_t users = 0;
  };
  std::recursive_mutex mutex;  ///< recursive: letting go of an environment may happen under it
  std::map<Key, Entry> entries;

  void leave(const Key& key) {
    const std::scoped_lock lock(mutex);
    const auto found = entries.find(key);
    if (found != entries.end() && --found->second.users == 0) entries.erase(found);
  }
};

ReaderRegistry& reader_registry() {
  // Never destroyed: sources may live until after the end of main.
  static auto* const registry = new ReaderRegistry;
  return *registry;
}

/// File systems on which two processes share the lock file's memory only if they share the node.
/// Elsewhere a place in the table of readers may be invisible to a writer on another node.
bool on_local_file_system(const std::string& path) {
  constexpr std::array<std::uint64_t, 9> kLocal = {
      0xEF53 /* ext */,       0x58465342 /* xfs */,     0x9123683E /* btrfs */,
      0x01021994 /* tmpfs */, 0x794C7630 /* overlay */, 0xF2F52010 /* f2fs */,
      0x2FC12FC1 /* zfs */,   0x858458F6 /* ramfs */,   0x3153464A /* jfs */};
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return false;
  const auto type = static_cast<std::uint64_t>(info.f_type) & 0xFFFFFFFF;
  return std::find(kLocal.begin(), kLocal.end(), type) != kLocal.end();
}

bool lock_file_usable(const DatasetPath& path) {
  struct stat info {};
  return !path.foreign && ::stat(path.lock_file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         info.st_size > 0 && ::access(path.lock_file.c_str(), R_OK | W_OK) == 0;
}

std::unique_ptr<const Environment> open_for_reading(const DatasetPath& path, Locking locking) {
  Environment::Options options{.flags = MDB_RDONLY | MDB_NOTLS};
  if (locking == Locking::if_possible && lock_file_usable(path)) {
    try {
      return std::make_unique<const Environment>(path, options);
    } catch (const Error&) {
      // A lock file that liblmdb refuses (other version, no locks here) is as good as none.
    }
  }
  options.flags |= MDB_NOLOCK;
  return std::make_unique<const Environment>(path, options);
}

/// One line of mdb_reader_list: process, thread, transaction. Others (a title, "no readers") differ
/// in their first word.
struct ReaderLine {
  std::string_view process;
  std::string_view transaction;
};

ReaderLine parse_reader_line(std::string_view line) {
  const auto begin = line.find_first_not_of(' ');
  const auto end = line.find_last_not_of(" \n");
  if (begin == std::string_view::npos || line[begin] < '0' || line[begin] > '9') return {};
  const auto last_space = line.rfind(' ', end);
  return {line.substr(begin, line.find(' ', begin) - begin),
          line.substr(last_space + 1, end - last_space)};
}

struct ReaderCensus {
  std::string process;
  std::string transaction;
  unsigned readers = 0;
  bool found = false;  ///< `process` holds `transaction`
};

int count_reader(const char* line, void* context) {
  auto& census = *static_cast<ReaderCensus*>(context);
  const ReaderLine reader = parse_reader_line(line);
  if (reader.process.empty()) return 0;
  ++census.readers;
  if (reader.process == census.process && reader.transaction == census.transaction) {
    census.found = true;
  }
  return 0;
}

ReaderCensus count_readers(const Environment& environment, std::uint64_t transaction) {
  ReaderCensus census;
  census.process = std::to_string(::getpid());
  census.transaction = std::to_string(transaction);
  mdb_reader_list(environment.get(), &count_reader, &census);
  return census;
}

/// A busy table is left to others: half of the places stay free for them.
bool has_room(const Environment& environment) {
  unsigned places = 0;
  if (mdb_env_get_maxreaders(environment.get(), &places) != MDB_SUCCESS) return false;
  return count_readers(environment, 0).readers < places / 2;
}

}  // namespace

std::shared_ptr<const Environment> shared_reader_environment(const DatasetPath& path,
                                                             Locking locking) {
  struct stat info {};
  if (::stat(path.data_file.c_str(), &info) != 0) {
    throw Error(ErrorKind::not_found, "no such file", "check the path", {.file = path.data_file});
  }
  const ReaderRegistry::Key key = {static_cast<std::uint64_t>(::getpid()), info.st_dev, info.st_ino,
                                   static_cast<std::uint64_t>(locking)};
  ReaderRegistry& registry = reader_registry();
  const std::scoped_lock lock(registry.mutex);
  auto found = registry.entries.find(key);
  if (found == registry.entries.end()) {
    found = registry.entries.emplace(key, ReaderRegistry::Entry{open_for_reading(path, locking), 0})
                .first;
  }
  ++found->second.users;
  return {found->second.environment.get(),
          [key](const Environment*) { reader_registry().leave(key); }};
}

ReaderSlot::ReaderSlot(std::shared_ptr<const Environment> environment)
    : transaction_(std::move(environment), MDB_RDONLY) {
  transaction_.environment().check();
}

std::shared_ptr<const ReaderSlot> ReaderSlot::try_hold(const DatasetPath& path) {
  if (!lock_file_usable(path) || !on_local_file_system(path.lock_file)) return nullptr;
  try {
    const auto environment = shared_reader_environment(path);
    if (!environment->locks()) return nullptr;
    int dead = 0;
    mdb_reader_check(environment->get(), &dead);  // gives back the places of killed processes
    if (!has_room(*environment)) return nullptr;
    return std::make_shared<const ReaderSlot>(environment);
  } catch (const Error&) {
    return nullptr;  // without a slot reading works as well, with less patience for writers
  }
}

MDB_dbi open_for_readers(const std::shared_ptr<const Environment>& environment,
                         const std::string& name) {
  // liblmdb wants such a transaction to end before another one of the process opens a database.
  const std::scoped_lock lock(reader_registry().mutex);
  Transaction opening(environment, MDB_RDONLY);
  const MDB_dbi dbi = opening.open_database(name, 0);
  check_lmdb(opening.commit(), "mdb_txn_commit", environment->path());
  return dbi;
}

bool ReaderSlot::holds() const {
  const Environment& environment = transaction_.environment();
  return environment.locks() && count_readers(environment, transaction()).found;
}

}  // namespace forebay::lmdb
