// MPI-IO and storage plug-ins over real MPI. How many ranks a node has is up to
// FOREBAY_RANKS_PER_NODE.
#include <gtest/gtest.h>

#include "forebay/storage.hpp"
#include "tests/mpi/world.hpp"
#include "tests/support/storage_contract.hpp"

namespace forebay {
namespace {

std::string plugin(const std::string& name) {
  std::string file = FOREBAY_TEST_PLUGINS "/plugin_";
  return file.append(name).append(".so");
}

TEST(MpiIo, GivesEverySample) { test::check_mpiio_gives_every_sample(test::world()); }

TEST(MpiIo, AFileThatIsCutIsAnErrorOnAllRanks) {
  for (const char* mode : {"collective", "independent"}) {
    test::check_cut_file(test::world(), std::string("engine=mpiio,mpiio=") + mode);
  }
}

TEST(MpiIo, MayStopEarly) { test::check_mpiio_may_stop_early(test::world()); }

TEST(MpiPlugin, GivesEverySample) {
  const auto world = test::world();
  load_storage_plugin(plugin("none"));
  const test::CommonDatabase data(*world, test::LmdbBuilder().random_order(300).values(0, 9000));
  for (const char* scheme : {"file://", "mem://", "test://halves:"}) {
    test::expect_all_samples(world, scheme + data.path(), data.records(),
                             "batch=16,epochs=2,coalesce=3,stage-bytes=64MiB");
  }
}

TEST(MpiPlugin, FaultsReachAllRanks) {
  const auto world = test::world();
  load_storage_plugin(plugin("none"));
  const test::CommonDatabase data(*world, test::LmdbBuilder().in_order(300).values(5000));
  // So many epochs that no rank is through before it hears of another one's failure.
  const std::string options = "batch=16,epochs=1000,coalesce=2,stage-bytes=64MiB";
  test::expect_error(world, "test://throws:" + data.path(), options, "threw an exception");
  test::expect_error(world, "test://fails:" + data.path(), options, "failed to read");
  // Only the owner of the last sample meets the end: the others must not be through before.
  test::expect_error(world, "test://short:" + data.data_file(),
                     "batch=16,epochs=100000,coalesce=2,stage-bytes=64MiB", "the file ends at");
  test::expect_error(world, "nobody://x", options, "FOREBAY_STORAGE_PLUGINS");
  EXPECT_THROW(load_storage_plugin(plugin("init_throws")), Error);
}

}  // namespace
}  // namespace forebay
