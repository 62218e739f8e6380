// MPI-IO and storage plug-ins over real MPI. How many ranks a node has is up to
// FOREBAY_RANKS_PER_NODE.
#include <gtest/gtest.h>

#include "comm/common_file.hpp"
#include "comm/mpi_communicator.hpp"
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

// Rounds of some bytes take the ways that reads of gigabytes take.
TEST(MpiIo, ReadsAreDoneInRoundsOfAnySize) {
  const auto world = test::world();
  std::unique_ptr<test::TemporaryFolder> folder;
  std::string path;
  const auto bytes = test::counting_bytes(100000);
  if (world->rank() == 0) {
    folder = std::make_unique<test::TemporaryFolder>();
    path = folder->file("data");
    test::write_bytes(path, bytes);
  }
  path = broadcast_text(*world, path, 0);
  for (const std::uint64_t round_bytes :
       {std::uint64_t{61}, std::uint64_t{1000}, std::uint64_t{512} << 20}) {
    const auto file =
        open_mpi_file(std::static_pointer_cast<MpiCommunicator>(world->split(0, world->rank())),
                      path, round_bytes);
    const auto me = static_cast<std::uint64_t>(world->rank());
    std::vector<std::byte> out(3000);
    // Out of order in the file and in memory, with a gap and an empty piece; the last rank has
    // none.
    std::vector<FilePiece> pieces = {
        {.offset = 5000 + 10 * me, .into = std::span(out).subspan(2000, 100)},
        {.offset = me, .into = std::span(out).first(1500)},
        {.offset = 9, .into = {}},
        {.offset = 6000, .into = std::span(out).subspan(1500, 400)}};
    if (world->rank() == world->size() - 1 && world->size() > 1) pieces.clear();
    EXPECT_EQ(file->read(99000, out), 1000U);
    file->read_all(pieces);
    for (const FilePiece& piece : pieces) {
      EXPECT_TRUE(std::equal(piece.into.begin(), piece.into.end(), bytes.begin() + piece.offset));
    }
    world->barrier();
  }
}

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
