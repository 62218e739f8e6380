// What opening leaves behind: nothing. No lock, no message, no state of libhdf5, and forks work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string_view>
#include <thread>

#include "format/hdf5/dataset.hpp"
#include "format/hdf5/driver.hpp"
#include "format/hdf5/open_hdf5.hpp"
#include "tests/format/hdf5/hdf5_file.hpp"

namespace forebay::test {
namespace {

using testing::HasSubstr;

const Hdf5Recipe kPacked{.name = "x", .shape = {300, 6}, .chunk = {32, 4}, .deflate = 6};

/// Whether `check` holds in a forked child.
template <typename Check>
bool holds_in_child(Check&& check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// pytorch/pytorch#1919: a file that is opened before a fork gave wrong values after it.
TEST(Hdf5Opening, WorksBeforeAndAfterAFork) {
  const Hdf5File file(kPacked);
  const auto ids = ids_from(0, 300);
  const auto expected = rows_of(kPacked, ids);
  const auto source = file.open();
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int worker = 0; worker < 4; ++worker) {
      EXPECT_TRUE(holds_in_child([&] { return read_field(*source, ids) == expected; }));
      EXPECT_TRUE(holds_in_child([&] { return read_field(*file.open(), ids) == expected; }));
    }
    EXPECT_EQ(read_field(*source, ids), expected);
  }
}

TEST(Hdf5Opening, PrintsNothingAndPutsBackWhatPrinted) {
  const TemporaryFolder folder;
  write_bytes(folder.file("bad.h5"),
              std::as_bytes(std::span("\x89HDF\r\n\x1a\n and then nothing of use")));
  H5E_auto2_t before = nullptr;
  void* data = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &before, &data);
  testing::internal::CaptureStderr();
  const Error error = error_from([&] { open_data_set(folder.file("bad.h5"), {}); });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_THAT(error.what(), HasSubstr("bad.h5"));
  H5E_auto2_t after = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &after, &data);
  EXPECT_EQ(before, after);
}

TEST(Hdf5Opening, LeavesNoObjectOfTheLibraryOpen) {
  const Hdf5File file(kPacked);
  const auto source = file.open();
  EXPECT_EQ(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
  error_from([&] { file.open("#nothing"); });
  EXPECT_EQ(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

TEST(Hdf5Opening, WorksWhileTheFileIsOpenForWritingElsewhere) {
  const Hdf5File file(Hdf5Builder().add(kPacked));
  // The writer's lock would make the library's own drivers fail.
  const hid_t writer = H5Fopen(file.path().c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(writer, 0);
  const auto ids = ids_from(0, 300);
  EXPECT_EQ(read_field(*file.open(), ids), rows_of(kPacked, ids));
  H5Fclose(writer);
}

TEST(Hdf5Opening, FindsChunksWhereTheLibrarySaysTheyAre) {
  for (const std::uint64_t block : {0, 2048}) {
    const Hdf5File file(Hdf5Builder().add(kPacked).user_block(block));
    hdf5::ChunkedLayout layout;
    layout.shape = {300, 6};
    layout.element_bytes = 2;
    std::vector<hdf5::ChunkPlace> expected;
    {
      const hid_t plain = H5Fopen(file.path().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
      const hid_t dataset = H5Dopen2(plain, "x", H5P_DEFAULT);
      for (hsize_t row = 0; row < 300; row += 32) {
        for (hsize_t column = 0; column < 6; column += 4) {
          const hsize_t at[2] = {row, column};
          unsigned mask = 0;
          haddr_t address = 0;
          hsize_t size = 0;
          H5Dget_chunk_info_by_coord(dataset, at, &mask, &address, &size);
          expected.push_back({.offset = address, .length = static_cast<std::uint32_t>(size)});
        }
      }
      H5Dclose(dataset);
      H5Fclose(plain);
    }
    const hdf5::Library library;
    hdf5::DriverState state{.file = open_file(file.path(), Engine::pread)};
    const hdf5::DriverFile opened(library, state);
    const hdf5::Id dataset(H5Dopen2(opened.get(), "x", H5P_DEFAULT), H5Dclose);
    const hdf5::Id properties(H5Dget_create_plist(dataset.get()), H5Pclose);
    hdf5::read_chunk_shape(properties.get(), layout);
    hdf5::read_filters(properties.get(), layout);
    hdf5::find_chunks(library, state, dataset.get(), layout);
    ASSERT_EQ(layout.places.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      // That function of the library forgets the user block (1.10).
      EXPECT_THAT(layout.places[i].offset,
                  testing::AnyOf(expected[i].offset, expected[i].offset + block));
      EXPECT_EQ(layout.places[i].length, expected[i].length);
    }
  }
}

TEST(Hdf5Opening, ManyChunksDoNotTakeQuadraticTime) {
  const Hdf5File file(Hdf5Recipe{.name = "x", .shape = {30000}, .chunk = {1}, .bytes = true});
  const auto start = std::chrono::steady_clock::now();
  const auto source = file.open();
  // The library's own way of listing them would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(source->facts().entries, 30000U);
}

TEST(Hdf5Opening, ReadsMetadataInFewRequests) {
  const Hdf5File file(Hdf5Recipe{.name = "x", .shape = {1000, 64}, .native = true});
  const auto source = file.open();
  EXPECT_LE(source->files()[0]->counters().requests, 8U);
}

TEST(Hdf5Opening, TheFingerprintIsOfTheContentNotOfThePlace) {
  const Hdf5File file(kPacked);
  const Hdf5File other(Hdf5Recipe{.name = "y", .shape = {300, 6}, .chunk = {32, 4}, .deflate = 6});
  const TemporaryFolder folder;
  std::filesystem::copy_file(file.path(), folder.file("copy.h5"));
  const auto copy = open_data_set(folder.file("copy.h5"), {});
  EXPECT_EQ(file.open()->facts().fingerprint, copy->facts().fingerprint);
  EXPECT_NE(file.open()->facts().fingerprint, other.open("#x=y")->facts().fingerprint);
}

TEST(Hdf5Opening, EveryTruncationEndsInAnErrorOrInTheRightBytes) {
  const Hdf5File file(kPacked);
  std::vector<std::byte> whole(std::filesystem::file_size(file.path()));
  open_file(file.path(), Engine::pread)->read(0, whole);
  const auto ids = ids_from(0, 300);
  for (std::size_t length = 0; length < whole.size(); length += 97) {
    const auto cut = memory_file("cut.h5", std::span(whole).first(length));
    const Error error = error_from([&] { hdf5::open_hdf5("cut.h5", {cut}, {}); });
    EXPECT_EQ(error.kind(), ErrorKind::corrupt) << length << ": " << error.what();
    EXPECT_THAT(error.what(), HasSubstr("cut.h5"));
  }
}

std::vector<std::byte> bytes_of(const Hdf5File& file) {
  std::vector<std::byte> bytes(std::filesystem::file_size(file.path()));
  open_file(file.path(), Engine::pread)->read(0, bytes);
  return bytes;
}

void replace_all(std::vector<std::byte>& bytes, std::uint64_t from, std::uint64_t to) {
  for (std::size_t i = 0; i + sizeof from <= bytes.size(); ++i) {
    if (std::memcmp(&bytes[i], &from, sizeof from) == 0) std::memcpy(&bytes[i], &to, sizeof to);
  }
}

TEST(Hdf5Opening, AShapeThatClaimsMoreThanIsStoredIsRefused) {
  constexpr std::uint64_t kRows = 4321;
  for (const Hdf5Recipe& recipe :
       {Hdf5Recipe{.name = "x", .shape = {kRows}, .compact = true, .bytes = true},
        Hdf5Recipe{.name = "x", .shape = {kRows}, .bytes = true}}) {
    auto bytes = bytes_of(Hdf5File(recipe));
    replace_all(bytes, kRows, kRows + 1000);
    const Error error =
        error_from([&] { hdf5::open_hdf5("lie.h5", {memory_file("lie.h5", bytes)}, {}); });
    EXPECT_EQ(error.kind(), ErrorKind::corrupt) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("lie.h5: data set 'x'"));
  }
}

TEST(Hdf5Opening, ADamagedIndexIsNotTakenForHoles) {
  const Hdf5Recipe recipe{.name = "x", .shape = {300, 6}, .chunk = {32, 6}, .native = true};
  const auto sound = bytes_of(Hdf5File(recipe));
  const auto ids = ids_from(0, 300);
  const std::string_view text(reinterpret_cast<const char*>(sound.data()), sound.size());
  // The nodes of the chunk index start with TREE, and the second byte after it is the node's type.
  for (std::size_t at = text.find("TREE"); at != std::string_view::npos;
       at = text.find("TREE", at + 1)) {
    for (std::size_t byte = at; byte < at + 200 && byte < sound.size(); ++byte) {
      auto bytes = sound;
      bytes[byte] ^= std::byte{0x41};
      try {
        const auto source = hdf5::open_hdf5("x.h5", {memory_file("x.h5", bytes)}, {});
        EXPECT_EQ(read_field(*source, ids).size(), 300U);
        EXPECT_EQ(source->facts().stored[0].how.find("never written"), std::string::npos)
            << byte - at;
      } catch (const Error& error) {
        EXPECT_NE(error.kind(), ErrorKind::usage);
      }
    }
  }
}

herr_t stay_inside(unsigned, const H5E_error2_t*, void* held) {
  static_cast<std::promise<void>*>(held)->set_value();
  std::this_thread::sleep_for(std::chrono::minutes(10));
  return 0;
}

// The library's own end would wait for its lock.
TEST(Hdf5OpeningDeathTest, AProgramEndsWhileAThreadIsHeldInTheLibrary) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        std::promise<void> held;
        std::thread([&held] {
          const hdf5::Library library;
          H5Fopen("no such file", H5F_ACC_RDONLY, H5P_DEFAULT);
          H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, stay_inside, &held);
        }).detach();
        held.get_future().wait();
        std::exit(3);
      },
      testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace forebay::test
