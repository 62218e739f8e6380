// Which samples the names of data sets make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forebay/error.hpp"
#include "format/hdf5/open_hdf5.hpp"
#include "tests/support/sample_checks.hpp"

namespace forebay::hdf5 {
namespace {

using test::error_from;
using testing::ElementsAre;
using testing::IsEmpty;

using Names = std::vector<std::string>;

TEST(NamedSamples, NumbersAreInTheirOrder) {
  const auto found = match_samples(Names{"s10", "s9", "s09", "t1", "s1/x", "s"}, {"s*"});
  EXPECT_THAT(found.keys, ElementsAre("09", "9", "10"));
  EXPECT_THAT(found.others, ElementsAre("t1", "s1/x", "s"));
  EXPECT_EQ(found.at(0, 2), "s10");
  EXPECT_FALSE(found.in_groups());
  EXPECT_THAT(match_samples(Names{"b2a", "b10a", "b2", "a"}, {"*"}).keys,
              ElementsAre("a", "b2", "b2a", "b10a"));
}

TEST(NamedSamples, EachHasWhatTheOthersHave) {
  const Names names{"1/x", "1/y", "2/x", "2/y", "3/x", "z"};
  EXPECT_THAT(match_samples(names, {"*/x"}).keys, ElementsAre("1", "2", "3"));
  EXPECT_EQ(match_samples(names, {"*/x"}).lacking, "");
  EXPECT_EQ(match_samples(names, {"*/x", "*/y"}).lacking,
            "sample '3' has no '*/y', which 2 of 3 have");
  EXPECT_EQ(error_from([&] { match_samples(names, {"*/w"}); }).kind(), ErrorKind::not_found);
}

TEST(NamedSamples, NamesThatDifferInANumberSuggestThem) {
  const auto patterns = [](const Names& names) {
    const auto found = find_samples(names);
    return found ? found->patterns : Names();
  };
  EXPECT_THAT(patterns({"img_1", "img_2", "img_17"}), ElementsAre("img_*"));
  EXPECT_THAT(patterns({"0001/image", "0001/label", "0002/image", "0002/label", "classes"}),
              ElementsAre("*/image", "*/label"));
  // Of several numbers the one that most names differ in.
  EXPECT_THAT(patterns({"run1/s1_v2", "run1/s2_v2", "run1/s3_v2"}), ElementsAre("run1/s*_v2"));
  EXPECT_THAT(patterns({"x", "y"}), IsEmpty());
  EXPECT_THAT(patterns({"3Dmap", "unitPar", "namePar"}), IsEmpty());
  EXPECT_THAT(patterns({"x1", "x2", "y", "z", "label"}), IsEmpty()) << "these are not most of all";
  EXPECT_THAT(patterns({}), IsEmpty());
}

TEST(NamedSamples, SoDoManySiblings) {
  Names names;
  for (char c = 'a'; c <= 'p'; ++c) names.push_back(std::string("images/") + c);
  EXPECT_FALSE(find_samples(names)) << "there may be so many fields";
  names.push_back("images/q");
  ASSERT_TRUE(find_samples(names));
  EXPECT_THAT(find_samples(names)->patterns, ElementsAre("images/*"));
  EXPECT_EQ(find_samples(names)->keys.size(), 17U);
}

}  // namespace
}  // namespace forebay::hdf5
