// The small databases of sidecar_fuzz and its seeds, each with what liblmdb reads from it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "format/lmdb/database.hpp"
#include "format/lmdb/provenance/make_sidecar.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::lmdb {

/// A database in memory.
struct FuzzedDatabase {
  std::shared_ptr<const File> file;
  std::unique_ptr<Database> database;
  std::vector<test::OracleRecord> records;
};

inline FuzzedDatabase build_database(const test::LmdbBuilder& builder) {
  const test::TemporaryFolder folder;
  const std::string path = builder.build(folder.path());
  FuzzedDatabase built;
  built.records = test::read_with_liblmdb(folder.path());
  const auto file = open_file(folder.file("data.mdb"), Engine::pread);
  std::vector<std::byte> bytes(file->size());
  file->read(0, bytes);
  built.file = memory_file("fuzz.mdb", bytes);
  built.database = std::make_unique<Database>(Database::open(built.file));
  return built;
}

inline std::vector<FuzzedDatabase> build_databases() {
  using test::LmdbBuilder;
  const std::vector<LmdbBuilder> builders{
      LmdbBuilder().in_order(400).values(60).commit_every(50),
      LmdbBuilder().in_order(90).values(2900).commit_every(20),
      LmdbBuilder().random_order(120).file_name_keys().values(0, 5000).commit_every(15),
      LmdbBuilder().random_order(150).values(0, 900).delete_every(4).refill().update_every(3),
      LmdbBuilder().random_order(200).integer_keys(8).values(200).commit_every(30),
  };
  std::vector<FuzzedDatabase> databases;
  for (const LmdbBuilder& builder : builders) databases.push_back(build_database(builder));
  return databases;
}

/// Number of a database, then how the rest of an input is to be understood.
enum class SidecarInput : std::uint8_t {
  whole,   ///< a sidecar file, as it is
  table,   ///< what follows the fingerprint in a sidecar of this form
  recipe,  ///< likewise
  lies,    ///< changes to a sound table, four bytes each
};

}  // namespace forebay::lmdb
