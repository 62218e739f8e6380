#include "format/class_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forebay/error.hpp"

namespace forebay {
namespace {

using testing::ElementsAre;

TEST(ClassNames, StayTheSameWhenTheyAreWrittenAndReadAgain) {
  const ClassNames lists[] = {
      {"cat", "dog"},
      {"two\nlines", "back\\slash", "\r", "trailing "},
      {"\xef\xbb\xbf"},  // begins as files of some editors do
      {"\xef\xbb\xbf"
       "cat",
       "dog"},
      {"\xff\xfe", "#", "a,b"},
  };
  for (const ClassNames& names : lists) {
    EXPECT_EQ(parse_class_names(class_names_text(names), "names"), names);
  }
}

TEST(ClassNames, AreReadAsEditorsOfAnySystemWriteThem) {
  EXPECT_THAT(parse_class_names("\xef\xbb\xbf"
                                "cat\r\ndog\r\n\r\n",
                                "names"),
              ElementsAre("cat", "dog"));
  EXPECT_THROW(parse_class_names("cat\n\ndog\n", "names"), Error);
  EXPECT_THROW(parse_class_names("cat\ncat\n", "names"), Error);
}

}  // namespace
}  // namespace forebay
