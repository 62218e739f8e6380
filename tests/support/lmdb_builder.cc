#include "tests/support/lmdb_builder.hpp"

#include <lmdb.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>

#include "tests/support/page_size_override.hpp"

namespace forebay::test {
namespace {

namespace fs = std::filesystem;

void check(int code, const char* call) {
  if (code != MDB_SUCCESS) throw std::runtime_error(std::string(call) + ": " + mdb_strerror(code));
}

struct CloseEnvironment {
  void operator()(MDB_env* env) const { mdb_env_close(env); }
};
using EnvironmentPointer = std::unique_ptr<MDB_env, CloseEnvironment>;

EnvironmentPointer make_environment() {
  MDB_env* env = nullptr;
  check(mdb_env_create(&env), "mdb_env_create");
  EnvironmentPointer pointer(env);
  check(mdb_env_set_maxdbs(env, 32), "mdb_env_set_maxdbs");
  return pointer;
}

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

std::string to_string(const MDB_val& val) {
  return {static_cast<const char*>(val.mv_data), val.mv_size};
}

MDB_val to_val(const std::string& text) { return {text.size(), const_cast<char*>(text.data())}; }

std::string decimal(std::uint64_t number, std::size_t width) {
  std::string text = std::to_string(number);
  return text.size() >= width ? text : std::string(width - text.size(), '0') + text;
}

}  // namespace

void visit_with_liblmdb(const std::string& path, const std::string& name,
                        const std::function<void(const OracleRecord&)>& visit) {
  const EnvironmentPointer env = make_environment();
  const unsigned subdir = fs::is_directory(path) ? 0U : unsigned{MDB_NOSUBDIR};
  check(mdb_env_open(env.get(), path.c_str(), MDB_RDONLY | MDB_NOLOCK | subdir, 0644),
        "mdb_env_open");
  MDB_txn* txn = nullptr;
  check(mdb_txn_begin(env.get(), nullptr, MDB_RDONLY, &txn), "mdb_txn_begin");
  MDB_dbi dbi = 0;
  check(mdb_dbi_open(txn, name.empty() ? nullptr : name.c_str(), 0, &dbi), "mdb_dbi_open");
  MDB_cursor* cursor = nullptr;
  check(mdb_cursor_open(txn, dbi, &cursor), "mdb_cursor_open");
  MDB_val key{}, value{};
  int code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
  for (; code == MDB_SUCCESS; code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
    visit({to_string(key), to_string(value)});
  }
  mdb_cursor_close(cursor);
  mdb_txn_abort(txn);
  if (code != MDB_NOTFOUND) check(code, "mdb_cursor_get");
}

std::vector<OracleRecord> read_with_liblmdb(const std::string& path, const std::string& name) {
  std::vector<OracleRecord> records;
  visit_with_liblmdb(path, name, [&](const OracleRecord& record) { records.push_back(record); });
  return records;
}

std::string test_value(std::uint64_t seed, std::uint64_t number, std::size_t size) {
  std::string value(size, '\0');
  std::uint64_t word = mix(seed * 1000003 + number);
  for (std::size_t at = 0; at < size; at += 8, word = mix(word)) {
    std::memcpy(value.data() + at, &word, std::min<std::size_t>(8, size - at));
  }
  return value;
}

LmdbBuilder& LmdbBuilder::order(std::uint64_t count, Order order) {
  count_ = count;
  order_ = order;
  return *this;
}
LmdbBuilder& LmdbBuilder::key_lengths(std::size_t least, std::size_t most) {
  keys_ = Keys::lengths;
  least_key_ = least;
  most_key_ = most;
  return *this;
}
LmdbBuilder& LmdbBuilder::file_name_keys() {
  keys_ = Keys::file_names;
  return *this;
}
LmdbBuilder& LmdbBuilder::integer_keys(std::size_t bytes) {
  keys_ = Keys::integers;
  least_key_ = most_key_ = bytes;
  return *this;
}
LmdbBuilder& LmdbBuilder::reverse_keys() {
  reverse_keys_ = true;
  return *this;
}
LmdbBuilder& LmdbBuilder::values(std::size_t least, std::size_t most) {
  least_value_ = least;
  most_value_ = most;
  return *this;
}
LmdbBuilder& LmdbBuilder::value_sizes(std::vector<std::size_t> sizes) {
  value_sizes_ = std::move(sizes);
  return *this;
}
LmdbBuilder& LmdbBuilder::delete_every(std::uint64_t n) {
  delete_every_ = n;
  return *this;
}
LmdbBuilder& LmdbBuilder::keep_every(std::uint64_t n) {
  keep_every_ = n;
  return *this;
}
LmdbBuilder& LmdbBuilder::delete_all() {
  delete_all_ = true;
  return *this;
}
LmdbBuilder& LmdbBuilder::refill() {
  refill_ = true;
  return *this;
}
LmdbBuilder& LmdbBuilder::update_every(std::uint64_t n) {
  update_every_ = n;
  return *this;
}
LmdbBuilder& LmdbBuilder::commit_every(std::uint64_t records) {
  commit_every_ = records;
  return *this;
}
LmdbBuilder& LmdbBuilder::held_reader() {
  held_reader_ = true;
  return *this;
}
LmdbBuilder& LmdbBuilder::writable_map() {
  writable_map_ = true;
  return *this;
}
LmdbBuilder& LmdbBuilder::named(std::string name) {
  name_ = std::move(name);
  return *this;
}
LmdbBuilder& LmdbBuilder::beside(std::vector<std::string> other_names) {
  other_names_ = std::move(other_names);
  return *this;
}
LmdbBuilder& LmdbBuilder::single_file() {
  single_file_ = true;
  return *this;
}
LmdbBuilder& LmdbBuilder::page_size(std::size_t bytes) {
  page_size_ = bytes;
  return *this;
}
LmdbBuilder& LmdbBuilder::map_size(std::size_t bytes) {
  map_size_ = bytes;
  return *this;
}
LmdbBuilder& LmdbBuilder::compacted() {
  compacted_ = true;
  return *this;
}
LmdbBuilder& LmdbBuilder::file_size(std::uint64_t bytes) {
  file_size_ = bytes;
  return *this;
}
LmdbBuilder& LmdbBuilder::seed(std::uint64_t seed) {
  seed_ = seed;
  return *this;
}

std::string LmdbBuilder::key(std::uint64_t number) const {
  switch (keys_) {
    case Keys::decimal:
      return decimal(number, 8);
    case Keys::file_names: {
      const std::string text = std::to_string(number);
      return decimal(number, 8) + "_n" + std::to_string(number % 97) + "/image " + text + ".jpg";
    }
    case Keys::integers: {
      std::string bytes(least_key_, '\0');
      std::memcpy(bytes.data(), &number, least_key_);  // files are little-endian, as we are
      return bytes;
    }
    case Keys::lengths:
      break;
  }
  // The number first, in as many bytes as fit, so that keys stay distinct.
  const std::size_t least = number < 256 ? 1 : (number < 65536 ? 2 : 4);
  const std::size_t random = mix(seed_ * 7919 + number) % (most_key_ - least_key_ + 1);
  const std::size_t length = std::max(least, least_key_ + random);
  std::string bytes;
  for (std::size_t i = std::min<std::size_t>(length, 4); i-- > 0;) {
    bytes.push_back(static_cast<char>(number >> (8 * i) & 0xff));
  }
  return bytes + test_value(seed_, number, length - bytes.size());
}

std::size_t LmdbBuilder::value_size(std::uint64_t number, std::uint64_t version) const {
  if (!value_sizes_.empty()) return value_sizes_[(number + version) % value_sizes_.size()];
  const std::uint64_t random = mix(seed_ * 31 + number * 8 + version);
  if (least_value_ != most_value_) return least_value_ + random % (most_value_ - least_value_ + 1);
  return version == 0 ? least_value_ : least_value_ / 2 + random % (least_value_ + 1);
}

/// One run of build(): an open environment and the transaction at hand.
class LmdbBuilder::Job {
 public:
  Job(const LmdbBuilder& recipe, std::string environment_path)
      : recipe_(recipe), path_(std::move(environment_path)) {
    const PageSizeOverride override(recipe_.page_size_);
    env_ = make_environment();
    check(mdb_env_set_mapsize(env_.get(), recipe_.map_size_), "mdb_env_set_mapsize");
    unsigned flags = MDB_NOSYNC;
    if (recipe_.single_file_) flags |= MDB_NOSUBDIR;
    if (recipe_.writable_map_) flags |= MDB_WRITEMAP;
    check(mdb_env_open(env_.get(), path_.c_str(), flags, 0644), "mdb_env_open");
  }
  ~Job() {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
    if (reader_ != nullptr) mdb_txn_abort(reader_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void run() {
    begin();
    make_other_databases();
    insert_all();
    delete_some();
    if (recipe_.update_every_ != 0) {
      for (std::uint64_t i = 0; i < recipe_.count_; i += recipe_.update_every_) put(i, 1);
    }
    commit_now();
    mdb_txn_abort(std::exchange(txn_, nullptr));
  }

  void copy_compacted(const std::string& to) {
    fs::create_directories(to);
    check(mdb_env_copy2(env_.get(), to.c_str(), MDB_CP_COMPACT), "mdb_env_copy2");
  }

 private:
  void begin() {
    check(mdb_txn_begin(env_.get(), nullptr, 0, &txn_), "mdb_txn_begin");
    unsigned flags = MDB_CREATE;
    if (recipe_.keys_ == Keys::integers) flags |= MDB_INTEGERKEY;
    if (recipe_.reverse_keys_) flags |= MDB_REVERSEKEY;
    const char* name = recipe_.name_.empty() ? nullptr : recipe_.name_.c_str();
    check(mdb_dbi_open(txn_, name, flags, &dbi_), "mdb_dbi_open");
  }

  void commit_now() {
    check(mdb_txn_commit(std::exchange(txn_, nullptr)), "mdb_txn_commit");
    in_transaction_ = 0;
    if (recipe_.held_reader_ && reader_ == nullptr) {
      check(mdb_txn_begin(env_.get(), nullptr, MDB_RDONLY, &reader_), "mdb_txn_begin");
    }
    begin();
  }

  void count() {
    if (++in_transaction_ == recipe_.commit_every_) commit_now();
  }

  void put(std::uint64_t number, std::uint64_t version, unsigned flags = 0) {
    const std::string key_text = recipe_.key(number);
    const std::string value_text =
        test_value(recipe_.seed_ + version, number, recipe_.value_size(number, version));
    MDB_val key = to_val(key_text);
    MDB_val value = to_val(value_text);
    check(mdb_put(txn_, dbi_, &key, &value, flags), "mdb_put");
    count();
  }

  void erase(std::uint64_t number) {
    const std::string key_text = recipe_.key(number);
    MDB_val key = to_val(key_text);
    check(mdb_del(txn_, dbi_, &key, nullptr), "mdb_del");
    count();
  }

  void make_other_databases() {
    for (const std::string& name : recipe_.other_names_) {
      MDB_dbi other = 0;
      check(mdb_dbi_open(txn_, name.c_str(), MDB_CREATE, &other), "mdb_dbi_open");
      for (std::uint64_t i = 0; i < 50; ++i) {
        const std::string key_text = decimal(i, 4);
        MDB_val key = to_val(key_text);
        MDB_val value = to_val(name);
        check(mdb_put(txn_, other, &key, &value, 0), "mdb_put");
      }
    }
  }

  void insert_all() {
    std::vector<std::uint64_t> numbers(recipe_.count_);
    std::iota(numbers.begin(), numbers.end(), 0U);
    if (recipe_.order_ == Order::descending) std::reverse(numbers.begin(), numbers.end());
    if (recipe_.order_ == Order::random) {
      std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(recipe_.seed_));
    }
    const unsigned flags = recipe_.order_ == Order::append ? unsigned{MDB_APPEND} : 0U;
    for (const std::uint64_t number : numbers) put(number, 0, flags);
    commit_now();
  }

  bool is_deleted(std::uint64_t number) const {
    if (recipe_.delete_all_) return true;
    if (recipe_.keep_every_ != 0) return number % recipe_.keep_every_ != 0;
    return recipe_.delete_every_ != 0 && number % recipe_.delete_every_ == 0;
  }

  void delete_some() {
    for (std::uint64_t i = 0; i < recipe_.count_; ++i) {
      if (is_deleted(i)) erase(i);
    }
    commit_now();
    if (!recipe_.refill_) return;
    for (std::uint64_t i = 0; i < recipe_.count_; ++i) {
      if (is_deleted(i)) put(i, 1);
    }
    commit_now();
  }

  const LmdbBuilder& recipe_;
  std::string path_;
  EnvironmentPointer env_;
  MDB_txn* txn_ = nullptr;
  MDB_txn* reader_ = nullptr;
  MDB_dbi dbi_ = 0;
  std::uint64_t in_transaction_ = 0;
};

std::string LmdbBuilder::path(const std::string& directory) const {
  const std::string base = single_file_ ? directory + "/images.lmdb" : directory;
  return name_.empty() ? base : base + "#" + name_;
}

std::string LmdbBuilder::build(const std::string& directory) const {
  fs::create_directories(directory);
  const std::string target = single_file_ ? directory + "/images.lmdb" : directory;
  const std::string data_file = single_file_ ? target : target + "/data.mdb";
  const std::string original = directory + "/original";
  if (compacted_) fs::create_directories(original);
  {
    Job job(*this, compacted_ ? original : target);
    job.run();
    if (compacted_) job.copy_compacted(directory);
  }
  if (compacted_) fs::remove_all(original);
  if (file_size_ > fs::file_size(data_file)) fs::resize_file(data_file, file_size_);
  return path(directory);
}

}  // namespace forebay::test
