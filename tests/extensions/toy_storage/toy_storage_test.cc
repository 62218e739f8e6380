// A row that a program adds to the table of storages is all that look-ups, loaders and commands
// need to read from it, LMDB and other formats alike.
#include "tests/extensions/toy_storage/toy_storage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "forebay/samples.hpp"
#include "tests/data_sets/made_sets.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/lmdb_builder.hpp"

namespace forebay {
namespace {

using test::error_from;
using ::testing::HasSubstr;

class ToyStorage : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { add_storage(toy::inverted_storage()); }

  /// Inverts the file, and gives the URL under which it is what it was.
  static std::string inverted(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    for (char& c : bytes) c = static_cast<char>(~c);
    test::write_file(path + ".inverted", bytes);
    return "inverted://" + path + ".inverted";
  }

  static std::vector<std::string> values_of(const std::string& path) {
    std::vector<std::string> values;
    const Samples samples = Samples::open(path);
    for (std::uint64_t id = 0; id < samples.entries(); ++id) {
      samples.read({&id, 1}, [&](const SampleView& sample) {
        const auto* text = reinterpret_cast<const char*>(sample.value.data());
        values.emplace_back(text, sample.value.size());
      });
    }
    return values;
  }

  static void expect_loaded(const std::string& path, const std::vector<std::string>& values,
                            const std::string& codec = "auto") {
    EXPECT_EQ(values_of(path), values);
    for (const char* text : {"batch=5,epochs=1,coalesce=2", "batch=5,order=shuffled,epochs=1"}) {
      LoaderOptions options = LoaderOptions::parse(text);
      options.codec = codec;
      std::map<std::uint64_t, int> times;
      run_ranks(1, 0, [&](const auto& comm) {
        Loader loader = Loader::open(comm, path, options);
        while (const auto batch = loader.next()) {
          for (const Sample& sample : batch->samples()) {
            EXPECT_TRUE(
                std::ranges::equal(sample.value, std::as_bytes(std::span(values.at(sample.id)))));
            ++times[sample.id];
          }
        }
      });
      EXPECT_EQ(times.size(), values.size()) << text;
    }
  }

  test::TemporaryFolder folder_;
};

TEST_F(ToyStorage, IsARowOfTheTable) {
  EXPECT_EQ(storages().back().scheme, "inverted");
  EXPECT_EQ(error_from([] { add_storage(toy::inverted_storage()); }).kind(), ErrorKind::usage);
  EXPECT_EQ(error_from([] { add_storage({.scheme = "Not one"}); }).kind(), ErrorKind::usage);
  EXPECT_THAT(error_from([] { open_file("nobody://x", Engine::pread); }).what(),
              HasSubstr("inverted://"));
}

TEST_F(ToyStorage, IsReadInEveryFormat) {
  const test::MadeSet tar = test::make_tar(folder_);
  const std::string shards[] = {folder_.file("s-0.tar"), folder_.file("s-1.tar")};
  expect_loaded(inverted(shards[0]) + "," + inverted(shards[1]), tar.values, "bytes");
  const test::MadeSet npy = test::make_npy(folder_);
  expect_loaded(inverted(npy.path), npy.values);
  const std::string lmdb = test::LmdbBuilder().in_order(40).values(100).build(folder_.file("d"));
  expect_loaded(inverted(lmdb + "/data.mdb"), values_of(lmdb));
}

TEST_F(ToyStorage, SaysWhatItCannotDo) {
  const test::MadeSet npy = test::make_npy(folder_);
  const std::string url = inverted(npy.path);
  const Error mapped = error_from([&] { open_file(url, Engine::mmap); });
  EXPECT_EQ(mapped.kind(), ErrorKind::unsupported);
  EXPECT_THAT(mapped.what(), HasSubstr("files with all bits inverted cannot be mapped"));
  const Error missing = error_from([] { Samples::open("inverted:///no/such.npy"); });
  EXPECT_EQ(missing.kind(), ErrorKind::not_found);
}

}  // namespace
}  // namespace forebay
