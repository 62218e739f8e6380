// Loaders over plug-ins, memory and MPI-IO, with ranks as threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "forebay/samples.hpp"
#include "forebay/storage.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/stalled_file.hpp"
#include "tests/support/storage_contract.hpp"

namespace forebay {
namespace {

std::string plugin(const std::string& name) {
  return std::string(FOREBAY_TEST_PLUGINS) + "/plugin_" + name + ".so";
}

TEST(LoaderStorage, EveryStorageGivesTheSameSamples) {
  load_storage_plugin(plugin("none"));
  run_ranks(4, 2, [](const auto& comm) {
    const test::CommonDatabase data(*comm, test::LmdbBuilder().random_order(300).values(0, 9000));
    const std::string batches = "batch=16,epochs=2,stage-bytes=64MiB,";
    for (const char* scheme : {"file://", "mem://", "test://fine:", "test://halves:"}) {
      for (const char* rest : {"coalesce=3", "strategy=lmm", "strategy=lmm-dm", "strategy=lmm-dio",
                               "engine=pread", "order=shuffled"}) {
        test::expect_all_samples(comm, scheme + data.path(), data.records(), batches + rest);
      }
    }
  });
}

TEST(LoaderStorage, FaultsOfAPluginReachAllRanks) {
  load_storage_plugin(plugin("none"));
  run_ranks(4, 2, [](const auto& comm) {
    const test::CommonDatabase data(*comm, test::LmdbBuilder().in_order(300).values(5000));
    // So many epochs that no rank is through before it hears of another one's failure.
    const std::string batches = "batch=16,epochs=1000,coalesce=2,stage-bytes=64MiB,";
    const auto fails = [&](const std::string& url, const std::string& rest,
                           const std::string& text) {
      test::expect_error(comm, url, batches + rest, text);
    };
    const std::string& path = data.path();
    fails("test://throws:" + path, "", "threw an exception");
    fails("test://fails:" + path, "", "failed to read");
    fails("test://lies:" + path, "", "says that it read");
    fails("test://short:" + data.data_file(), "", "the file ends at");
    fails("test://throws:" + path, "coalesce=1,order=shuffled", "threw an exception");
    fails("test://fine:/no/such", "", "no such file on this storage");
    fails("nobody://x", "", "FOREBAY_STORAGE_PLUGINS");
    fails("test://fine:" + path, "engine=uring", "--engine pread");
    fails("test://fine:" + path, "engine=mmap", "--engine pread");
    fails("test://fine:" + path, "engine=mpiio", "MPI-IO opens files of the operating system");
    fails("test://fine:" + path, "strategy=lmdb", "liblmdb");
  });
}

TEST(LoaderStorage, APluginThatHangsWhileADataSetIsOpenedEndsAllRanks) {
  load_storage_plugin(plugin("none"));
  const double begin = now_seconds();
  std::atomic<int> ended = 0;
  run_ranks(4, 2, [&](const auto& comm) {
    const test::CommonDatabase data(*comm, test::LmdbBuilder().in_order(300).values(5000));
    for (const char* mode : {"stuck", "silent", "slow"}) {
      for (const char* rest : {"", "strategy=lmm", "order=in_memory"}) {
        try {
          Loader loader = Loader::open(
              comm, "test://" + std::string(mode) + ":" + data.path(),
              LoaderOptions::parse(std::string("batch=16,epochs=1,timeout=0.3s,stage-bytes=64MiB") +
                                   (*rest == 0 ? "" : ",") + rest));
          while (loader.next()) continue;
          ADD_FAILURE() << mode << " " << rest << ": nothing was thrown";
        } catch (const Error& error) {
          const std::string text = error.what();
          EXPECT_NE(text.find("test://"), std::string::npos) << text;
          if (std::string(mode) != "slow") {
            EXPECT_NE(text.find("gave no answer for 0.3 s"), std::string::npos) << text;
            EXPECT_NE(text.find("--timeout"), std::string::npos) << text;
          }
          ++ended;
        }
      }
    }
    comm->barrier();
  });
  EXPECT_EQ(ended, 4 * 9);
  EXPECT_LT(now_seconds() - begin, 40);
}

// Beginnings of files are read at once, and the tree lies behind.
TEST(LoaderStorage, APluginThatHangsWhileRecordsAreLocatedEndsAllRanks) {
  load_storage_plugin(plugin("none"));
  std::atomic<int> ended = 0;
  run_ranks(4, 2, [&](const auto& comm) {
    const test::CommonDatabase data(*comm, test::LmdbBuilder().in_order(20'000).values(300));
    const double begin = now_seconds();
    try {
      Loader::open(comm, "test://slow:" + data.path(),
                   LoaderOptions::parse("batch=16,epochs=1,timeout=0.3s,stage-bytes=64MiB,"
                                        "order=in_memory"));
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("plugin_none.so gave no answer for 0.3 s"), std::string::npos) << text;
      EXPECT_NE(text.find("test://slow:" + data.path()), std::string::npos) << text;
      EXPECT_NE(text.find("--timeout"), std::string::npos) << text;
      ++ended;
    }
    EXPECT_LT(now_seconds() - begin, 4);
    comm->barrier();
  });
  EXPECT_EQ(ended, 4);
}

// Opening looks at some leaf pages, and the index at all.
TEST(SamplesOfStorage, OneThatHangsWhileRecordsAreLocatedIsGivenUp) {
  const test::TemporaryFolder folder;
  test::LmdbBuilder().in_order(20'000).values(300).build(folder.file("data"));
  const std::uint64_t size = std::filesystem::file_size(folder.file("data/data.mdb"));
  add_storage({.scheme = "stalled",
               .description = "a storage that stalls",
               .open =
                   [size](const std::string& name, Engine engine) {
                     return std::make_shared<test::StalledFile>(open_file(name, engine), size / 3);
                   },
               .may_hang = true});
  const std::string url = "stalled://" + folder.file("data");
  for (const bool decoded : {true, false}) {
    const Samples samples = Samples::open(url, LoaderOptions::parse("timeout=0.3s"));
    const Error error = test::error_from([&] {
      if (decoded) samples.schema();
      samples.key(7);
    });
    EXPECT_THAT(error.what(), testing::HasSubstr(url + ": a storage that stalls gave no answer for "
                                                       "0.3 s when it was to read the first"));
  }
}

// A load of 10 s: nobody waits for its end when nobody wants it any more.
TEST(LoaderStorage, LoadersThatAreDroppedWhileTheyLoadEndSoon) {
  load_storage_plugin(plugin("none"));
  const test::TemporaryFolder folder;
  test::write_bytes(folder.file("records"), std::vector<std::byte>(32 << 20));
  for (const char* rest : {"", ",memory-ratio=0.5"}) {
    double longest = 0;
    std::mutex mutex;
    run_ranks(3, 2, [&](const auto& comm) {
      auto loader = std::make_optional<Loader>(Loader::open(
          comm, "test://crawls:" + folder.file("records"),
          LoaderOptions::parse(std::string("batch=12,order=in_memory,format=raw,schema=x:u8[4096],"
                                           "stage-bytes=256MiB,request-bytes=16KiB,depth=1") +
                               rest)));
      std::this_thread::sleep_for(std::chrono::milliseconds(100 * comm->rank()));
      const double begin = now_seconds();
      loader.reset();
      const std::lock_guard lock(mutex);
      longest = std::max(longest, now_seconds() - begin);
    });
    EXPECT_LT(longest, 3);
  }
}

TEST(Mpiio, GivesEverySample) {
  for (const int ranks_per_node : {0, 1, 2}) {
    run_ranks(4, ranks_per_node, test::check_mpiio_gives_every_sample);
  }
}

TEST(Mpiio, AFileThatIsCutIsAnErrorOnAllRanks) {
  for (const char* mode : {"collective", "independent"}) {
    run_ranks(3, 1, [mode](const auto& comm) {
      test::check_cut_file(comm, std::string("engine=mpiio,mpiio=") + mode);
    });
  }
}

TEST(Mpiio, MayStopEarly) { run_ranks(3, 1, test::check_mpiio_may_stop_early); }

TEST(Mpiio, WhatCannotBeReadTogetherIsRefused) {
  run_ranks(2, 0, [](const auto& comm) {
    const test::CommonDatabase data(*comm, test::LmdbBuilder().in_order(30));
    const auto fails = [&](const std::string& rest, const std::string& text) {
      test::expect_error(comm, data.path(), "batch=4,epochs=1,engine=mpiio," + rest, text);
    };
    fails("strategy=lmm", "locate seek");
    fails("locate=handoff", "locate handoff");
    fails("strategy=lmdb", "liblmdb");
    fails("mpiio=collective,order=shuffled", "strided");
    fails("mpiio=collective,stagger=1", "no turns");
  });
}

// One rank ends its loader: the others hear of it and are not left in a call that never ends.
TEST(Mpiio, ARankThatEndsEndsTheOthers) {
  run_ranks(3, 1, [](const auto& comm) {
    const test::CommonDatabase data(*comm, test::LmdbBuilder().in_order(500).values(3000));
    Loader loader =
        Loader::open(comm, data.path(),
                     LoaderOptions::parse("batch=12,engine=mpiio,mpiio=collective,coalesce=1"));
    ASSERT_TRUE(loader.next());
    comm->barrier();
    if (comm->rank() == 1) {
      const Loader gone = std::move(loader);
    } else {
      const double begin = now_seconds();
      EXPECT_THROW(while (loader.next()){}, Error);
      EXPECT_LT(now_seconds() - begin, 6);
    }
    comm->barrier();
  });
}

}  // namespace
}  // namespace forebay
