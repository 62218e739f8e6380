#include "format/dataset_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "forebay/error.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/few_descriptors.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Patterns : public testing::Test {
 protected:
  Patterns() {
    for (const char* folder : {"a", "b"}) {
      std::filesystem::create_directory(folder_.file(folder));
      test::write_bytes(folder_.file(std::string(folder) + "/0.tar"), {});
    }
    test::write_bytes(folder_.file("c"), {});  // no folder
    std::filesystem::create_symlink("nowhere", folder_.file("d"));
    std::filesystem::create_symlink("e", folder_.file("e"));
  }

  test::TemporaryFolder folder_;
};

TEST_F(Patterns, WhatIsNoFolderMatchesNothing) {
  EXPECT_THAT(find_files(folder_.file("*/*.tar")),
              ElementsAre(folder_.file("a/0.tar"), folder_.file("b/0.tar")));
}

// Else all that is in it would be missing without a word.
TEST_F(Patterns, AFolderThatCannotBeReadIsAnError) {
  if (!test::kFewDescriptorsDo) GTEST_SKIP() << "the sanitizer needs some";
  const test::FewDescriptors none(0);
  for (const char* pattern : {"*/*.tar", "a/*.tar"}) {
    const Error error = test::error_from([&] { find_files(folder_.file(pattern)); });
    EXPECT_EQ(error.kind(), ErrorKind::io) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("ulimit -n"));
  }
}

}  // namespace
}  // namespace forebay
