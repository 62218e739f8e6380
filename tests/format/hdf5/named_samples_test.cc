// Which samples the names of data sets make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forebay/error.hpp"
#include "format/hdf5/layout.hpp"
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

TEST(NamedSamples, NumbersHaveSignsAndDecimals) {
  const auto keys = [](const Names& names, const std::string& pattern) {
    return match_samples(names, {pattern}).keys;
  };
  EXPECT_THAT(keys({"x_-1", "x_-10", "x_-2", "x_0", "x_3"}, "x_*"),
              ElementsAre("-10", "-2", "-1", "0", "3"));
  EXPECT_THAT(keys({"-0.5", "-1", "0", "0.25", "10"}, "*"),
              ElementsAre("-1", "-0.5", "0", "0.25", "10"));
  EXPECT_THAT(keys({"t1", "t0.5", "t0.25", "t1.125"}, "t*"),
              ElementsAre("0.25", "0.5", "1", "1.125"));
  // What is counted behind a point comes to a 0 at its end.
  EXPECT_THAT(keys({"v1.10", "v1.2", "v1.9"}, "v*"), ElementsAre("1.2", "1.9", "1.10"));
  EXPECT_THAT(keys({"v1.2.10", "v1.2.3", "v1.10.1"}, "v*"),
              ElementsAre("1.2.3", "1.2.10", "1.10.1"));
  // A '-' behind a word parts it from the number.
  EXPECT_THAT(keys({"img-1", "img-10", "img-2"}, "img*"), ElementsAre("-1", "-2", "-10"));
}

TEST(NamedSamples, ANameBelongsToThePatternThatSaysTheMostOfIt) {
  const Names names{"img_0", "img_0_mask", "img_1", "img_1_mask"};
  const auto found = match_samples(names, {"img_*", "img_*_mask"});
  EXPECT_THAT(found.keys, ElementsAre("0", "1"));
  EXPECT_EQ(found.lacking, "");
  EXPECT_THAT(find_samples(names)->patterns, ElementsAre("img_*", "img_*_mask"));
}

TEST(NamedSamples, EachHasWhatTheOthersHave) {
  const Names names{"1/x", "1/y", "2/x", "2/y", "3/x", "z"};
  EXPECT_THAT(match_samples(names, {"*/x"}).keys, ElementsAre("1", "2", "3"));
  EXPECT_EQ(match_samples(names, {"*/x"}).lacking, "");
  EXPECT_EQ(match_samples(names, {"*/x", "*/y"}).lacking,
            "sample '3' has no '*/y', which 2 of 3 have");
  EXPECT_THAT(match_samples(names, {"*/x", "*/y"}).whole, ElementsAre("*/x"));
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

/// Its pattern, and the patterns of single numbers that may be meant instead.
std::pair<Names, Names> patterns(const Names& names) {
  const auto found = find_samples(names);
  return {found->patterns, found->by_single_numbers};
}

TEST(NamedSamples, OfSeveralNumbersInAStepEachMayTellSamplesApart) {
  Names slices, images, decimals, signs, labels;
  for (const int c : {0, 1, 2}) {
    for (const int s : {0, 1, 2, 3}) {
      const std::string both = "case0" + std::to_string(c) + "_slice00" + std::to_string(s);
      slices.push_back(both);
      images.push_back(both + "/image");
      images.push_back(both + "/label");
      decimals.push_back("t_" + std::to_string(c) + "." + std::to_string(25 * s));
      signs.push_back(std::to_string(4 * c + s - 6));
      labels.push_back("img_" + std::to_string(4 * c + s) + "_" + std::to_string(s % 2));
    }
  }
  const Names each{"case00_slice*", "case01_slice*", "case02_slice*"};
  EXPECT_EQ(patterns(slices), std::pair(Names{"case*"}, each));
  EXPECT_EQ(patterns(images).first, (Names{"case*/image", "case*/label"}));
  EXPECT_THAT(patterns(images).second, testing::Contains("case01_slice*/label"));
  EXPECT_THAT(patterns(images).second, testing::SizeIs(6));
  EXPECT_EQ(patterns(decimals), std::pair(Names{"t_*"}, Names{})) << "a decimal is one number";
  EXPECT_EQ(patterns(signs), std::pair(Names{"*"}, Names{}));
  EXPECT_EQ(patterns(labels), std::pair(Names{"img_*"}, Names{})) << "the first tells all apart";
  EXPECT_EQ(patterns({"a_2_0", "a_2_1", "a_2_2"}), std::pair(Names{"a_2_*"}, Names{}));
  EXPECT_EQ(patterns({"1:00", "1:15", "2:00", "2:15"}).first, Names{"*"});
  EXPECT_THAT(patterns({"1:00", "1:15", "2:00", "2:15"}).second, testing::SizeIs(2));
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

TEST(NamedSamples, StarsStandForWholeSteps) {
  const Names names{"cat/1", "cat/2", "dog/1", "dog/x/1", "z"};
  const auto found = match_samples(names, {"*/*"});
  EXPECT_THAT(found.keys, ElementsAre("cat/1", "cat/2", "dog/1"));
  EXPECT_THAT(found.others, ElementsAre("dog/x/1", "z"));
  EXPECT_EQ(found.at(0, 1), "cat/2");
  EXPECT_FALSE(found.in_groups());
  EXPECT_TRUE(match_samples(names, {"*/*/1"}).in_groups());
  EXPECT_FALSE(stars_of("a*b*"));
  EXPECT_FALSE(stars_of("*/a/*"));
  EXPECT_FALSE(stars_of("a"));
}

/// Each as "NAME(members)", splits with a '!'.
Names alike(const Names& layout, const std::string& group = {}) {
  Names shown;
  for (const Alike& one : find_alike(layout, group)) {
    std::string text;
    for (const Twin& twin : one.twins) {
      text += (twin.path.empty() ? twin.name + "?" : twin.path) + "(";
      for (const auto& [member, stored] : twin.members) text += stored + " ";
      text.back() = ')';
    }
    shown.push_back((one.splits ? "!" : "") + text);
  }
  return shown;
}

TEST(Alike, SplitsAreToldByTheirNames) {
  EXPECT_THAT(alike({"train/x", "train/y", "test/x"}),
              ElementsAre("!train(train/x train/y)test(test/x)"));
  EXPECT_THAT(alike({"X_Test", "X_Train", "meta"}), ElementsAre("!train?(X_Train)test?(X_Test)"));
  EXPECT_THAT(alike({"a/dev/x", "a/train/x", "b/dev/x", "b/train/x"}).front(),
              "!train?(a/train/x b/train/x)dev?(a/dev/x b/dev/x)");
  EXPECT_THAT(alike({"g/train/*", "g/val/*", "test/*"}, "g/").front(),
              "!g/train(g/train/*)g/val(g/val/*)");
  for (const Names& layout : {Names{"train/x", "test/y"},
                              {"train/x", "train/y"},
                              {"x_train", "y_test"},
                              {"constraint", "contest"},
                              {"test", "train/x"}}) {
    EXPECT_THAT(alike(layout), IsEmpty()) << layout[0];
  }
}

TEST(Alike, GroupsAreToldByTheNamesInThem) {
  EXPECT_THAT(alike({"cat/*", "dog/*", "z"}), ElementsAre("cat(cat/*)dog(dog/*)"));
  EXPECT_THAT(alike({"l/x", "l/y", "r/x", "r/y", "s/x"}), ElementsAre("l(l/x l/y)r(r/x r/y)"));
  EXPECT_THAT(alike({"a/l/x", "a/r/x", "b/y"}), ElementsAre("a/l(a/l/x)a/r(a/r/x)"));
  EXPECT_THAT(alike({"cat/c_*", "dog/d*"}), ElementsAre("cat(cat/c_*)dog(dog/d*)"));
  EXPECT_THAT(alike({"cat/c_*", "cat/d_*", "dog/d_*"}), IsEmpty());
  EXPECT_THAT(alike({"*/l/x", "*/r/x"}), IsEmpty()) << "parts of samples";
  EXPECT_THAT(alike({"x", "y", "a/deep/x", "a/y"}), IsEmpty());
}

}  // namespace
}  // namespace forebay::hdf5
