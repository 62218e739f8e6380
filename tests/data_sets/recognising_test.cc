// What a file is, is told by its first bytes where they tell it: reads far apart cost a cold file
// more than their bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "forebay/storage.hpp"
#include "format/registry.hpp"
#include "tests/data_sets/made_sets.hpp"
#include "tests/support/unmapped_file.hpp"

namespace forebay {
namespace {

/// The furthest offset that was read.
std::atomic<std::uint64_t> furthest = 0;

class Watched final : public test::UnmappedFile {
 public:
  using UnmappedFile::UnmappedFile;

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    furthest = std::max(furthest.load(), offset);
    UnmappedFile::read(offset, out);
  }
};

TEST(Recognising, LooksNoFurtherThanTheFirstBytesThatTell) {
  add_storage({.scheme = "watched",
               .description = "files that are watched",
               .open = [](const std::string& name, Engine engine) -> std::shared_ptr<const File> {
                 return std::make_shared<Watched>(open_file(name, engine));
               }});
  const test::TemporaryFolder folder;
  for (const std::string format : {"npy", "tar", "tfrecord", "lmdb"}) {
    const test::MadeSet set = test::makers().at(format)(folder);
    furthest = 0;
    EXPECT_EQ(recognise_files("watched://" + set.one_file), format);
    EXPECT_LT(furthest.load(), 512U) << format;
  }
}

}  // namespace
}  // namespace forebay
