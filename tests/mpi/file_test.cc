// MPI-IO by the room's own interface.
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/common_file.hpp"
#include "comm/mpi/communicator.hpp"
#include "tests/mpi/world.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

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

}  // namespace
}  // namespace forebay
