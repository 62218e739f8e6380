#include "format/lmdb/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace forebay::lmdb {
namespace {

namespace fs = std::filesystem;

DatasetPath destination_path(const std::string& destination, bool single_file) {
  DatasetPath path;
  path.text = destination;
  path.environment = destination;
  path.single_file = single_file;
  path.data_file = single_file ? destination : destination + "/data.mdb";
  path.lock_file = single_file ? destination + "-lock" : destination + "/lock.mdb";
  if (single_file) return path;
  std::error_code error;
  fs::create_directories(destination, error);
  if (error) {
    throw Error(ErrorKind::io, fmt::format("cannot make the directory: {}", error.message()),
                "choose another destination", {.file = destination});
  }
  return path;
}

/// A round number of pages of any size, and enough for the pages that every database has.
std::size_t usable_map_size(std::size_t bytes) {
  constexpr std::size_t kLeast = std::size_t{256} * 1024;
  constexpr std::size_t kUnit = std::size_t{64} * 1024;
  return std::max(kLeast, (bytes + kUnit - 1) / kUnit * kUnit);
}

Environment::Options environment_options(const WriterOptions& options) {
  return {.flags = options.sync ? 0U : unsigned{MDB_NOSYNC},
          .map_size = usable_map_size(options.map_size)};
}

}  // namespace

Writer::Writer(const std::string& destination, const WriterOptions& options)
    : options_(options), path_(destination_path(destination, options.single_file)) {
  // For an existing database liblmdb keeps the larger one of this map and its own.
  environment_ = std::make_shared<Environment>(path_, environment_options(options_));
  open_database();
}

void Writer::open_database() {
  Transaction transaction(environment_, 0U);
  refuse_other_kind(transaction);
  const unsigned flags = MDB_CREATE | (options_.integer_keys ? unsigned{MDB_INTEGERKEY} : 0U);
  dbi_ = transaction.open_database(options_.name, flags);
  check_lmdb(transaction.commit(), "mdb_txn_commit", path_.environment);
}

void Writer::refuse_other_kind(Transaction& transaction) const {
  // liblmdb would silently make an existing main database one of integer keys, and add duplicates.
  MDB_dbi dbi = 0;
  const char* name = options_.name.empty() ? nullptr : options_.name.c_str();
  const int code = mdb_dbi_open(transaction.get(), name, 0, &dbi);
  if (code == MDB_NOTFOUND) return;
  check_lmdb(code, "mdb_dbi_open", path_.environment);
  MDB_stat stat{};
  unsigned flags = 0;
  check_lmdb(mdb_stat(transaction.get(), dbi, &stat), "mdb_stat", path_.environment);
  check_lmdb(mdb_dbi_flags(transaction.get(), dbi, &flags), "mdb_dbi_flags", path_.environment);
  const bool integers = (flags & MDB_INTEGERKEY) != 0;
  if (stat.ms_entries == 0 && flags == 0) return;
  if (integers == options_.integer_keys && (flags & MDB_DUPSORT) == 0) return;
  throw Error(ErrorKind::usage,
              fmt::format("the database exists and has {}",
                          (flags & MDB_DUPSORT) != 0 ? "several values a key"
                          : integers                 ? "integer keys"
                                                     : "keys that are not integers"),
              "choose another destination", {.file = path_.environment});
}

Writer::~Writer() = default;

void Writer::put(std::span<const std::byte> key, std::span<const std::byte> value) {
  add(key, value, false);
}

void Writer::erase(std::span<const std::byte> key) { add(key, {}, true); }

void Writer::add(std::span<const std::byte> key, std::span<const std::byte> value, bool erase) {
  changes_.push_back({key.size(), value.size(), erase});
  bytes_.insert(bytes_.end(), key.begin(), key.end());
  bytes_.insert(bytes_.end(), value.begin(), value.end());
  if (options_.commit_every != 0 && changes_.size() >= options_.commit_every) commit();
}

void Writer::commit() {
  if (changes_.empty()) return;
  try {
    int code = try_commit();
    while (code == MDB_MAP_FULL || code == MDB_MAP_RESIZED) {
      // Resized: another writer made the map larger; size 0 takes that over.
      const std::size_t size = environment_->map_size();
      environment_->set_map_size(code == MDB_MAP_FULL ? size * 2 : 0);
      code = try_commit();
    }
    check_lmdb(code, "writing a batch", path_.environment);
  } catch (const Error&) {
    drop_batch();
    throw;
  }
  drop_batch();
}

void Writer::drop_batch() {
  changes_.clear();
  bytes_.clear();
}

int Writer::try_commit() {
  MDB_txn* begun = nullptr;
  const int code = mdb_txn_begin(environment_->get(), nullptr, 0, &begun);
  if (code != MDB_SUCCESS) return code;
  Transaction transaction(environment_, begun);
  const int applied = apply(transaction);
  return applied == MDB_SUCCESS ? transaction.commit() : applied;
}

int Writer::apply(Transaction& transaction) {
  std::size_t offset = 0;
  for (const Change& change : changes_) {
    const std::span<const std::byte> all(bytes_);
    MDB_val key = to_val(all.subspan(offset, change.key_size));
    MDB_val value = to_val(all.subspan(offset + change.key_size, change.value_size));
    int code = change.erase ? mdb_del(transaction.get(), dbi_, &key, nullptr)
                            : mdb_put(transaction.get(), dbi_, &key, &value,
                                      options_.append ? unsigned{MDB_APPEND} : 0U);
    if (change.erase && code == MDB_NOTFOUND) code = MDB_SUCCESS;
    if (code == MDB_BAD_VALSIZE || code == MDB_KEYEXIST) refuse_key(code, change, offset);
    if (code != MDB_SUCCESS) return code;
    offset += change.key_size + change.value_size;
  }
  return MDB_SUCCESS;
}

void Writer::refuse_key(int code, const Change& change, std::size_t offset) const {
  const std::string_view key(reinterpret_cast<const char*>(bytes_.data()) + offset,
                             change.key_size);
  Where where{.file = path_.environment};
  where.key = printable_key(key);
  if (code == MDB_KEYEXIST) {
    throw Error(ErrorKind::usage, "the key does not come after all keys before it",
                "sort the records, or do not append", where);
  }
  throw Error(ErrorKind::usage, fmt::format("a key of {} bytes is not possible", change.key_size),
              fmt::format("use 1 to {} bytes{}", mdb_env_get_maxkeysize(environment_->get()),
                          options_.integer_keys ? " (integers: 4 or 8)" : ""),
              where);
}

std::uint64_t Writer::entries() {
  Transaction transaction(environment_, MDB_RDONLY);
  MDB_stat stat{};
  check_lmdb(mdb_stat(transaction.get(), dbi_, &stat), "mdb_stat", path_.environment);
  return stat.ms_entries;
}

std::vector<std::byte> Writer::last_key() {
  Transaction transaction(environment_, MDB_RDONLY);
  MDB_cursor* cursor = nullptr;
  check_lmdb(mdb_cursor_open(transaction.get(), dbi_, &cursor), "mdb_cursor_open",
             path_.environment);
  MDB_val key{};
  MDB_val value{};
  std::vector<std::byte> result;
  const int code = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
  if (code == MDB_SUCCESS) {
    const auto span = to_span(key);
    result.assign(span.begin(), span.end());
  }
  mdb_cursor_close(cursor);
  if (code != MDB_NOTFOUND) check_lmdb(code, "mdb_cursor_get", path_.environment);
  return result;
}

bool Writer::find(std::span<const std::byte> key, std::vector<std::byte>& value) {
  Transaction transaction(environment_, MDB_RDONLY);
  MDB_val wanted = to_val(key);
  MDB_val found{};
  const int code = mdb_get(transaction.get(), dbi_, &wanted, &found);
  value.clear();
  if (code == MDB_NOTFOUND) return false;
  check_lmdb(code, "mdb_get", path_.environment);
  const auto span = to_span(found);
  value.assign(span.begin(), span.end());
  return true;
}

}  // namespace forebay::lmdb
