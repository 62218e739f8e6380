// What a Loader owes its users on every storage and by MPI-IO, on any communicator: the same
// samples, and errors on all ranks. Every rank calls these with the same arguments.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::test {

inline std::string bytes_as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Two epochs of `path`, sample by sample against `records`.
inline void expect_all_samples(const std::shared_ptr<Communicator>& comm, const std::string& path,
                               const std::vector<OracleRecord>& records,
                               const std::string& options_text) {
  SCOPED_TRACE(path + " " + options_text);
  Loader loader = Loader::open(comm, path, LoaderOptions::parse(options_text));
  std::uint64_t seen = 0;
  while (const auto batch = loader.next()) {
    for (const Sample& sample : batch->samples()) {
      ASSERT_LT(sample.id, records.size());
      ASSERT_EQ(bytes_as_text(sample.key), records[sample.id].key);
      ASSERT_EQ(bytes_as_text(sample.value), records[sample.id].value);
      ++seen;
    }
  }
  EXPECT_GT(seen, 0U);
  comm->barrier();
}

/// Opening or reading `path` ends in an Error with `text` on this rank, within 5 s.
inline void expect_error(const std::shared_ptr<Communicator>& comm, const std::string& path,
                         const std::string& options_text, const std::string& text) {
  SCOPED_TRACE(path + " " + options_text);
  comm->barrier();
  const double begin = now_seconds();
  try {
    Loader loader = Loader::open(comm, path, LoaderOptions::parse(options_text));
    while (loader.next()) {
    }
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(text));
  }
  EXPECT_LT(now_seconds() - begin, 5);
  comm->barrier();
}

/// A database that rank 0 builds, and its path and records on all ranks.
class CommonDatabase {
 public:
  CommonDatabase(Communicator& comm, const LmdbBuilder& builder) {
    if (comm.rank() == 0) {
      folder_ = std::make_unique<TemporaryFolder>();
      path_ = builder.build(folder_->file("db"));
    }
    path_ = broadcast_text(comm, path_, 0);
    records_ = read_with_liblmdb(path_);
    comm.barrier();
  }
  const std::string& path() const { return path_; }
  std::string data_file() const { return path_ + "/data.mdb"; }
  const std::vector<OracleRecord>& records() const { return records_; }

 private:
  std::unique_ptr<TemporaryFolder> folder_;
  std::string path_;
  std::vector<OracleRecord> records_;
};

inline void check_mpiio_gives_every_sample(const std::shared_ptr<Communicator>& comm) {
  const CommonDatabase data(*comm, LmdbBuilder().random_order(400).values(0, 9000));
  const std::string mpiio = "batch=32,epochs=1,stage-bytes=64MiB,engine=mpiio,";
  for (const char* rest :
       {"mpiio=collective,coalesce=3",
        "mpiio=collective,locate=scan,roots=2,coalesce=4,gap-bytes=0",
        "mpiio=collective,strategy=lmm-dio,coalesce=2", "mpiio=collective,buffers=1,roots=2",
        "mpiio=independent,roots=2,coalesce=3", "mpiio=independent,stagger=1,roots=2",
        "mpiio=independent,order=shuffled,seed=3",
        "order=grouped,group=50,strategy=lmm-dio-prov"}) {
    expect_all_samples(comm, data.path(), data.records(), mpiio + rest);
  }
}

inline void check_mpiio_may_stop_early(const std::shared_ptr<Communicator>& comm) {
  const CommonDatabase data(*comm, LmdbBuilder().in_order(500).values(3000));
  for (int round = 0; round < 3; ++round) {
    Loader loader = Loader::open(
        comm, data.path(), LoaderOptions::parse("batch=16,engine=mpiio,mpiio=collective,roots=2"));
    for (int i = 0; i <= 5 * round; ++i) ASSERT_TRUE(loader.next());
    comm->barrier();
  }
}

/// The file is cut behind its first half once it is open.
inline void check_cut_file(const std::shared_ptr<Communicator>& comm, const std::string& options) {
  const CommonDatabase data(*comm, LmdbBuilder().in_order(3000).values(6000));
  comm->barrier();
  double begin = now_seconds();
  try {
    Loader loader = Loader::open(
        comm, data.path(),
        LoaderOptions::parse(
            "batch=32,epochs=1,coalesce=2,strategy=lmm-dio-prov,stage-bytes=64MiB," + options));
    loader.next();
    comm->barrier();
    if (comm->rank() == 0) {
      std::filesystem::resize_file(data.data_file(),
                                   std::filesystem::file_size(data.data_file()) / 2);
    }
    comm->barrier();
    begin = now_seconds();
    while (loader.next()) {
    }
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("cut"));
  }
  EXPECT_LT(now_seconds() - begin, 5);
  comm->barrier();
}

}  // namespace forebay::test
