// Databases made by liblmdb as a recipe says, and recipes drawn at random.
#pragma once

#include <lmdb.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>

#include "format/lmdb/provenance/recipe.hpp"
#include "tests/support/page_size_override.hpp"

namespace forebay::test {

inline void check_lmdb(int code) {
  if (code != MDB_SUCCESS) throw std::runtime_error(mdb_strerror(code));
}

/// Writes the database of a recipe. Keys count upwards; values stay unwritten, since only their
/// places matter.
class RecipeDatabase {
 public:
  RecipeDatabase(const lmdb::Recipe& recipe, const std::string& directory) : recipe_(recipe) {
    const PageSizeOverride page_size(recipe.page_size);
    MDB_env* env = nullptr;
    check_lmdb(mdb_env_create(&env));
    env_.reset(env);
    check_lmdb(mdb_env_set_maxdbs(env, 4));
    check_lmdb(mdb_env_set_mapsize(env, std::size_t{4} << 30));
    check_lmdb(mdb_env_open(env, directory.c_str(), MDB_NOSYNC | MDB_NOMEMINIT, 0644));
  }

  void build() {
    begin();
    if (recipe_.created_apart) {
      commit();
      begin();
    }
    for (std::uint64_t number = 0; number < recipe_.records; ++number) {
      if (number != 0 && starts_transaction(number)) {
        commit();
        begin();
      }
      put(number);
    }
    commit();
  }

 private:
  struct Close {
    void operator()(MDB_env* env) const { mdb_env_close(env); }
  };

  bool starts_transaction(std::uint64_t number) const {
    if (recipe_.first_commit == 0) {
      return recipe_.commit_every != 0 && number % recipe_.commit_every == 0;
    }
    if (number <= recipe_.first_commit) return number == recipe_.first_commit;
    return recipe_.commit_every != 0 && (number - recipe_.first_commit) % recipe_.commit_every == 0;
  }

  void begin() {
    check_lmdb(mdb_txn_begin(env_.get(), nullptr, 0, &txn_));
    const char* name = recipe_.name.empty() ? nullptr : recipe_.name.c_str();
    // A flag of the main database is a change, and so makes a transaction of its own.
    const bool flagged = name == nullptr && recipe_.created_apart;
    const unsigned flags = MDB_CREATE | (flagged ? unsigned{MDB_REVERSEKEY} : 0U);
    check_lmdb(mdb_dbi_open(txn_, name, flags, &dbi_));
    reverse_ = flagged;
  }

  void commit() { check_lmdb(mdb_txn_commit(txn_)); }

  void put(std::uint64_t number) {
    std::string key(recipe_.key_size, '\0');
    // The lowest byte of the number last, or first where keys compare from their ends.
    for (std::size_t i = 0; i < std::min<std::size_t>(8, key.size()); ++i) {
      key[reverse_ ? i : key.size() - 1 - i] = static_cast<char>(number >> (8 * i));
    }
    MDB_val key_val{key.size(), key.data()};
    MDB_val value{recipe_.value_size, nullptr};
    const unsigned append = recipe_.append ? unsigned{MDB_APPEND} : 0U;
    check_lmdb(mdb_put(txn_, dbi_, &key_val, &value, MDB_RESERVE | append));
  }

  const lmdb::Recipe& recipe_;
  std::unique_ptr<MDB_env, Close> env_;
  MDB_txn* txn_ = nullptr;
  MDB_dbi dbi_ = 0;
  bool reverse_ = false;
};

class RecipeDice {
 public:
  explicit RecipeDice(std::uint64_t seed) : random_(seed) {}

  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random_);
  }
  /// Small numbers are as likely as large ones.
  std::uint64_t of_any_size(std::uint64_t least, std::uint64_t most) {
    const double low = std::log(static_cast<double>(least));
    const double high = std::log(static_cast<double>(most) + 1);
    const double drawn = std::exp(std::uniform_real_distribution<>(low, high)(random_));
    return std::clamp(static_cast<std::uint64_t>(drawn), least, most);
  }
  bool one_in(std::uint64_t n) { return between(1, n) == 1; }

  /// Of at most `bytes` bytes of values, `records` records and `commits` commits.
  lmdb::Recipe recipe(std::uint64_t bytes, std::uint64_t records, std::uint64_t commits) {
    lmdb::Recipe recipe;
    recipe.page_size = one_in(2) ? 4096U : 4096U << between(1, 3);
    recipe.key_size = static_cast<std::uint32_t>(one_in(8) ? between(1, 2) : between(1, 64));
    recipe.value_size = static_cast<std::uint32_t>(one_in(4) ? between(1, recipe.page_size / 2)
                                                             : of_any_size(1, 300'000));
    std::uint64_t most = std::min(records, std::max<std::uint64_t>(1, bytes / recipe.value_size));
    if (recipe.key_size < 3) most = std::min(most, std::uint64_t{1} << (8 * recipe.key_size));
    recipe.records = one_in(3) ? most : between(1, most);
    recipe.commit_every = one_in(5) ? 0 : of_any_size(1, 5000);
    if (recipe.commit_every != 0) {
      recipe.records = std::min(recipe.records, commits * recipe.commit_every);
    }
    if (one_in(4)) recipe.first_commit = of_any_size(1, 5000);
    recipe.append = one_in(2);
    if (one_in(3)) recipe.name = std::string(between(1, 40), 'n');
    recipe.created_apart = one_in(3);
    return recipe;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace forebay::test
