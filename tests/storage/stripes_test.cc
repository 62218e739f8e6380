// What Lustre says of a file, by recorded answers: of its own structures, made by hand after their
// published layout, and damaged at random.
#include "storage/stripes.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "tests/support/lustre_answers.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max();

using test::composite_layout;
using test::LustreAnswer;
using test::LustreComponent;
using test::plain_layout;

TEST(LustreLayout, OfAPlainFile) {
  const std::vector<StripedRange> expected = {{0, kEnd, {.bytes = 1 << 20, .servers = 8}}};
  EXPECT_EQ(parse_lustre_layout(plain_layout(1 << 20, 8).bytes()), expected);
  EXPECT_EQ(parse_lustre_layout(plain_layout(1 << 20, 8, true).bytes()), expected);
}

TEST(LustreLayout, OfAProgressiveFile) {
  constexpr std::uint64_t kFirst = 64 << 20, kSecond = std::uint64_t{1} << 30;
  const std::vector<StripedRange> expected = {{0, kFirst, {.bytes = 1 << 20, .servers = 1}},
                                              {kFirst, kSecond, {.bytes = 4 << 20, .servers = 4}}};
  EXPECT_EQ(parse_lustre_layout(composite_layout({{0, kFirst, plain_layout(1 << 20, 1)},
                                                  {kFirst, kSecond, plain_layout(4 << 20, 4, true)},
                                                  {kSecond, kEnd, plain_layout(16 << 20, 16), 0}})
                                    .bytes()),
            expected)
      << "the last component has no objects yet";
}

TEST(LustreLayout, OfAMirroredFileIsTheFirstMirror) {
  EXPECT_EQ(parse_lustre_layout(composite_layout({{0, kEnd, plain_layout(1 << 20, 2)},
                                                  {0, kEnd, plain_layout(4 << 20, 4)}})
                                    .bytes()),
            (std::vector<StripedRange>{{0, kEnd, {.bytes = 1 << 20, .servers = 2}}}));
}

TEST(LustreLayout, OfNothingThatIsUnderstoodIsEmpty) {
  EXPECT_TRUE(parse_lustre_layout({}).empty());
  EXPECT_TRUE(parse_lustre_layout(std::vector<std::byte>(100)).empty());
  EXPECT_TRUE(parse_lustre_layout(plain_layout(0, 8).bytes()).empty());
  EXPECT_TRUE(parse_lustre_layout(plain_layout(1 << 20, 0).bytes()).empty())
      << "the directory's default";
  LustreAnswer cut = plain_layout(1 << 20, 1);
  cut.bytes().resize(31);
  EXPECT_TRUE(parse_lustre_layout(cut.bytes()).empty());
}

TEST(LustreLayout, OfDamagedAnswersIsSoundOrEmpty) {
  std::mt19937 random(5);
  const auto sound = composite_layout({{0, 1 << 26, plain_layout(1 << 20, 1)},
                                       {1 << 26, kEnd, plain_layout(4 << 20, 4)}})
                         .bytes();
  for (int round = 0; round < test::random_cases(20'000); ++round) {
    auto bytes = sound;
    for (auto i = random() % 6; i > 0; --i) {
      bytes[random() % 160] = static_cast<std::byte>(random());
    }
    bytes.resize(random() % 2 == 0 ? bytes.size() : random() % bytes.size());
    std::uint64_t end = 0;
    for (const StripedRange& range : parse_lustre_layout(bytes)) {
      EXPECT_GE(range.begin, end);
      EXPECT_GT(range.end, range.begin);
      EXPECT_GT(range.stripes.bytes, 0U);
      EXPECT_GT(range.stripes.servers, 0U);
      end = range.end;
    }
  }
}

TEST(Stripes, OfOtherFileSystemsAreNotKnown) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder.file("file"), test::counting_bytes(100));
  const auto file = open_file(folder.file("file"), Engine::pread);
  EXPECT_EQ(file->stripes(0), Stripes());
  EXPECT_EQ(request_bytes_for(*file, 123), 123U);
}

}  // namespace
}  // namespace forebay
