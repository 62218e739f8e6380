// Makes LMDB databases of every shape for tests, through liblmdb alone, and reads them back through
// liblmdb alone: the oracle that our own reader is compared with.
//
//   LmdbBuilder().random_order(1000).values(0, 5000).delete_every(7).commit_every(1).build(dir);
//
// Everything is a function of the verbs and the seed: the same recipe gives the same records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace forebay::test {

/// A record as liblmdb's own cursor gives it.
struct OracleRecord {
  std::string key;
  std::string value;
  bool operator==(const OracleRecord&) const = default;
};

/// Calls `visit` for each record in cursor order. `path` is DIR or FILE, `name` a named database.
void visit_with_liblmdb(const std::string& path, const std::string& name,
                        const std::function<void(const OracleRecord&)>& visit);
std::vector<OracleRecord> read_with_liblmdb(const std::string& path, const std::string& name = {});

/// Bytes that depend on (seed, number) alone.
std::string test_value(std::uint64_t seed, std::uint64_t number, std::size_t size);

class LmdbBuilder {
 public:
  // How many records, and in which order they are inserted.
  LmdbBuilder& in_order(std::uint64_t count) { return order(count, Order::ascending); }
  LmdbBuilder& appended(std::uint64_t count) { return order(count, Order::append); }
  LmdbBuilder& reverse_order(std::uint64_t count) { return order(count, Order::descending); }
  LmdbBuilder& random_order(std::uint64_t count) { return order(count, Order::random); }

  // Keys: zero-padded decimal numbers of 8 digits unless told otherwise.
  LmdbBuilder& key_length(std::size_t bytes) { return key_lengths(bytes, bytes); }
  LmdbBuilder& key_lengths(std::size_t least, std::size_t most);
  LmdbBuilder& file_name_keys();  ///< "00000012_n012/image 12.jpg", as Caffe writes them
  LmdbBuilder& integer_keys(std::size_t bytes);
  LmdbBuilder& reverse_keys();

  // Value sizes: fixed, random in [least, most], or cycling through a list.
  LmdbBuilder& values(std::size_t bytes) { return values(bytes, bytes); }
  LmdbBuilder& values(std::size_t least, std::size_t most);
  LmdbBuilder& value_sizes(std::vector<std::size_t> sizes);

  // What happens after the first insertion, in this order.
  LmdbBuilder& delete_every(std::uint64_t n);  ///< records 0, n, 2n, ...
  LmdbBuilder& keep_every(std::uint64_t n);    ///< deletes all others
  LmdbBuilder& delete_all();
  LmdbBuilder& refill();                       ///< deleted keys again, with other values
  LmdbBuilder& update_every(std::uint64_t n);  ///< new values of other sizes

  // Transactions and environment.
  LmdbBuilder& commit_every(std::uint64_t records);  ///< 0, the default: one transaction a phase
  LmdbBuilder& held_reader();                        ///< a reader open from the first commit on
  LmdbBuilder& writable_map();
  LmdbBuilder& named(std::string name);
  LmdbBuilder& beside(std::vector<std::string> other_names);  ///< further named databases
  LmdbBuilder& single_file();
  LmdbBuilder& page_size(std::size_t bytes);
  LmdbBuilder& map_size(std::size_t bytes);
  LmdbBuilder& compacted();                     ///< rewritten by mdb_env_copy2(MDB_CP_COMPACT)
  LmdbBuilder& file_size(std::uint64_t bytes);  ///< afterwards, as a sparse file
  LmdbBuilder& seed(std::uint64_t seed);

  /// Builds below `directory`, which is created. Returns the data set's path ("DIR#name").
  std::string build(const std::string& directory) const;
  /// The path that build returns.
  std::string path(const std::string& directory) const;

 private:
  enum class Order { ascending, descending, random, append };
  enum class Keys { decimal, lengths, file_names, integers };
  class Job;

  LmdbBuilder& order(std::uint64_t count, Order order);
  std::string key(std::uint64_t number) const;
  std::size_t value_size(std::uint64_t number, std::uint64_t version) const;

  std::uint64_t count_ = 0;
  Order order_ = Order::ascending;
  Keys keys_ = Keys::decimal;
  std::size_t least_key_ = 8, most_key_ = 8;
  bool reverse_keys_ = false;
  std::size_t least_value_ = 100, most_value_ = 100;
  std::vector<std::size_t> value_sizes_;
  std::uint64_t delete_every_ = 0, keep_every_ = 0, update_every_ = 0, commit_every_ = 0;
  bool delete_all_ = false, refill_ = false, held_reader_ = false, writable_map_ = false;
  bool single_file_ = false, compacted_ = false;
  std::string name_;
  std::vector<std::string> other_names_;
  std::size_t page_size_ = 0, map_size_ = std::size_t{1} << 30;
  std::uint64_t file_size_ = 0, seed_ = 1;
};

struct NamedRecipe {
  std::string name;
  LmdbBuilder builder;
};

/// Databases of every kind that Forebay promises to read; at least 30.
std::vector<NamedRecipe> standard_databases();

}  // namespace forebay::test
