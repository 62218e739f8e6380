#include "tests/support/lmdb_records.hpp"

#include <lmdb.h>

#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace forebay::test {
namespace {

void require(int code) {
  if (code != MDB_SUCCESS) throw std::runtime_error(mdb_strerror(code));
}

MDB_val value_of(const std::string& text) {
  return {text.size(), const_cast<char*>(text.data())};  // liblmdb does not change it
}

std::string image(std::uint64_t number) {
  return test_value(5, number, number % 7 == 3 ? 0 : number * 997 % 6000);
}

std::string label(std::uint64_t number) { return test_value(6, number, number * 13 % 21); }

}  // namespace

void write_records(const std::string& directory, std::span<const OracleRecord> records,
                   const std::string& name) {
  std::filesystem::create_directories(directory);
  MDB_env* env = nullptr;
  require(mdb_env_create(&env));
  require(mdb_env_set_mapsize(env, std::size_t{1} << 30));
  require(mdb_env_set_maxdbs(env, 8));
  require(mdb_env_open(env, directory.c_str(), MDB_NOSYNC, 0644));
  MDB_txn* txn = nullptr;
  require(mdb_txn_begin(env, nullptr, 0, &txn));
  MDB_dbi dbi = 0;
  require(mdb_dbi_open(txn, name.empty() ? nullptr : name.c_str(), MDB_CREATE, &dbi));
  for (const OracleRecord& record : records) {
    MDB_val key = value_of(record.key);
    MDB_val value = value_of(record.value);
    require(mdb_put(txn, dbi, &key, &value, 0));
  }
  require(mdb_txn_commit(txn));
  mdb_env_close(env);
}

std::string numbered(const std::string& prefix, std::uint64_t number, int width) {
  std::string digits = std::to_string(number);
  const auto wanted = static_cast<std::size_t>(width);
  if (digits.size() < wanted) digits.insert(0, wanted - digits.size(), '0');
  return prefix + digits;
}

std::vector<OracleRecord> grouped_records(std::uint64_t count, std::uint64_t first, int width) {
  std::vector<OracleRecord> records;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = first + (i * 7919 + 3) % count;
    records.push_back({numbered("label-", number, width), label(number)});
  }
  for (std::uint64_t number = first; number < first + count; ++number) {
    records.push_back({numbered("image-", number, width), image(number)});
  }
  return records;
}

std::string packed(const std::vector<std::string>& parts) {
  // As include/forebay/packed_parts.hpp draws it, by other means.
  std::string text;
  const auto put = [&text](auto number) {
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    text.append(bytes, sizeof number);
  };
  put(std::uint32_t{0x53504246});
  put(static_cast<std::uint32_t>(parts.size()));
  for (const std::string& part : parts) put(std::uint64_t{part.size()});
  for (const std::string& part : parts) {
    text.resize((text.size() + 7) / 8 * 8, '\0');
    text += part;
  }
  return text;
}

std::vector<OracleRecord> packed_samples(std::uint64_t count, std::uint64_t first, int width) {
  std::vector<OracleRecord> samples;
  for (std::uint64_t number = first; number < first + count; ++number) {
    samples.push_back({numbered("", number, width), packed({image(number), label(number)})});
  }
  return samples;
}

}  // namespace forebay::test
