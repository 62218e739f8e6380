#include "format/lmdb/liblmdb.hpp"

#include "core/limits.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/log.hpp"
#include "storage/file_error.hpp"

namespace forebay::lmdb {
namespace {

constexpr unsigned kFileMode = 0644;

ErrorKind kind_of(int code) {
  switch (code) {
    case MDB_NOTFOUND:
    case ENOENT:
      return ErrorKind::not_found;
    case MDB_PAGE_NOTFOUND:
    case MDB_CORRUPTED:
    case MDB_INVALID:
      return ErrorKind::corrupt;
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:
      return ErrorKind::unsupported;
    case MDB_BAD_VALSIZE:
    case MDB_KEYEXIST:
    case MDB_DBS_FULL:
    case EINVAL:
      return ErrorKind::usage;
    case MDB_MAP_RESIZED:
      return ErrorKind::changed;
    default:
      return ErrorKind::io;
  }
}

std::string remedy_of(int code) {
  switch (code) {
    case ENODEV:
      return "this file system does not map files: use another engine than liblmdb";
    case EACCES:
    case EPERM:
    case EROFS:
      return "check the permissions";
    case MDB_READERS_FULL:
      return "close some readers of the database";
    case MDB_MAP_RESIZED:
      return "open it again: a writer has made it larger";
    default:
      return remedy_for(code, "see the documentation of liblmdb for this code");
  }
}

/// Called instead of abort(), by a function of liblmdb that does not go on.
void throw_failed_assertion(MDB_env* env, const char* message) {
  const auto* environment = static_cast<const Environment*>(mdb_env_get_userctx(env));
  throw Error(
      ErrorKind::corrupt, fmt::format("liblmdb has met a page that cannot be: {}", message),
      "the file is damaged, or was written to by a writer that does not know of its readers: "
      "see 'forebay verify', or read a copy",
      {.file = environment->path()});
}

/// Where this process has mapped `file` from its beginning on without a guard: one place, of
/// `bytes` bytes unless that is 0. Empty where the system does not tell.
std::span<const std::byte> find_mapping(const std::string& file, std::size_t bytes) {
  std::error_code failed;
  const std::string path = std::filesystem::canonical(file, failed).string();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; !failed && std::getline(maps, line);) {
    if (!line.ends_with(path)) continue;
    std::istringstream words(line);
    std::uintptr_t begin = 0, end = 0;
    std::uint64_t offset = 0;
    std::string rights, device, inode, name;
    words >> std::hex >> begin;
    words.ignore(1);
    words >> end >> rights >> offset >> device >> inode >> std::ws;
    std::getline(words, name);
    const auto* const first = reinterpret_cast<const std::byte*>(begin);
    const bool right_size = bytes == 0 || end - begin == bytes;
    if (name == path && offset == 0 && right_size && !FaultGuard::place_of(first)) {
      return {first, end - begin};
    }
  }
  log(LogLevel::debug, "{}: where liblmdb has mapped it is not known", file);
  return {};
}

std::size_t whole_pages(std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

void check_lmdb(int code, std::string_view call, const std::string& path) {
  if (code == MDB_SUCCESS) return;
  throw Error(kind_of(code), fmt::format("{} failed: {}", call, mdb_strerror(code)),
              remedy_of(code), {.file = path});
}

MDB_val to_val(std::span<const std::byte> bytes) {
  // liblmdb takes pointers to what it only reads as non-const.
  return {bytes.size(), const_cast<std::byte*>(bytes.data())};
}

std::span<const std::byte> to_span(const MDB_val& val) {
  return {static_cast<const std::byte*>(val.mv_data), val.mv_size};
}

Environment::Environment(const DatasetPath& path, const Options& options)
    : data_file_(path.data_file),
      path_(path.environment),
      locks_((options.flags & MDB_NOLOCK) == 0) {
  check_lmdb(mdb_env_create(&env_), "mdb_env_create", path_);
  mdb_env_set_userctx(env_, this);
  mdb_env_set_assert(env_, throw_failed_assertion);
  int code = mdb_env_set_maxdbs(env_, options.databases);
  if (code == MDB_SUCCESS && options.map_size != 0) {
    code = mdb_env_set_mapsize(env_, options.map_size);
  }
  const unsigned flags = options.flags | (path.single_file ? MDB_NOSUBDIR : 0U);
  if (code == MDB_SUCCESS) code = mdb_env_open(env_, path_.c_str(), flags, kFileMode);
  try {
    check_lmdb(code, "mdb_env_open", path_);
    if ((options.flags & MDB_RDONLY) != 0) guard_mappings(path);
  } catch (...) {
    mdb_env_close(std::exchange(env_, nullptr));
    throw;
  }
}

Environment::~Environment() {
  data_guard_.reset();  // closing gives back the place in the table of readers, and no more
  mdb_env_close(env_);
}

/// liblmdb does not say where its mappings are, but the system does. (Those of writers move.)
void Environment::guard_mappings(const DatasetPath& path) {
  map_ = find_mapping(path.data_file, whole_pages(map_size()));
  if (!map_.empty()) data_guard_.emplace(map_, path.data_file);
  if (!locks_) return;
  const auto table = find_mapping(path.lock_file, 0);
  if (!table.empty()) lock_guard_.emplace(table, path.lock_file, true);
}

void Environment::check() const {
  if (!data_guard_) return;
  if (const auto offset = data_guard_->fault()) throw fault_error(data_file_, *offset);
}

std::size_t Environment::map_size() const {
  MDB_envinfo info{};
  check_lmdb(mdb_env_info(env_, &info), "mdb_env_info", path_);
  return info.me_mapsize;
}

void Environment::set_map_size(std::size_t bytes) {
  check_lmdb(mdb_env_set_mapsize(env_, bytes), "mdb_env_set_mapsize", path_);
}

Transaction::Transaction(std::shared_ptr<const Environment> environment, unsigned flags)
    : environment_(std::move(environment)) {
  int code = mdb_txn_begin(environment_->get(), nullptr, flags, &txn_);
  if (code == MDB_READERS_FULL) {
    // Places of processes that were killed are given back only when somebody asks.
    int dead = 0;
    mdb_reader_check(environment_->get(), &dead);
    code = mdb_txn_begin(environment_->get(), nullptr, flags, &txn_);
  }
  check_lmdb(code, "mdb_txn_begin", environment_->path());
}

Transaction::~Transaction() {
  if (txn_ != nullptr) mdb_txn_abort(txn_);
}

int Transaction::commit() { return mdb_txn_commit(std::exchange(txn_, nullptr)); }

MDB_dbi Transaction::open_database(const std::string& name, unsigned flags) {
  MDB_dbi dbi = 0;
  check_lmdb(mdb_dbi_open(txn_, name.empty() ? nullptr : name.c_str(), flags, &dbi), "mdb_dbi_open",
             environment_->path());
  return dbi;
}

}  // namespace forebay::lmdb
