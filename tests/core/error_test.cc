#include "forebay/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace forebay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void expect_equal(const Error& left, const Error& right) {
  EXPECT_STREQ(left.what(), right.what());
  EXPECT_EQ(left.kind(), right.kind());
  EXPECT_EQ(left.happened(), right.happened());
  EXPECT_EQ(left.remedy(), right.remedy());
  EXPECT_EQ(left.where().file, right.where().file);
  EXPECT_EQ(left.where().offset, right.where().offset);
  EXPECT_EQ(left.where().sample, right.where().sample);
  EXPECT_EQ(left.where().key, right.where().key);
  EXPECT_EQ(left.where().rank, right.where().rank);
}

TEST(Error, MessageNamesPlaceFaultAndRemedyInThisOrder) {
  const Error error(
      ErrorKind::corrupt, "bad page", "restore it",
      Where{.file = "data.mdb", .offset = 4096, .sample = 7, .key = "00000007", .rank = 3});
  EXPECT_STREQ(error.what(),
               "rank 3: data.mdb: offset 4096: sample 7: key 00000007: bad page; restore it");
}

TEST(Error, PlaceAndRemedyMayBeAbsent) {
  EXPECT_STREQ(Error(ErrorKind::usage, "no batch size").what(), "no batch size");
}

TEST(Error, MessageIsAlwaysOneLine) {
  const Error error(ErrorKind::io, "two\nlines\r", "and\ttabs", Where{.file = "a\nb"});
  EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
  EXPECT_THAT(error.what(), Not(HasSubstr("\t")));
}

TEST(Error, WithinFillsOnlyWhatIsEmpty) {
  const Error inner(ErrorKind::corrupt, "bad", "", Where{.file = "inner", .sample = 0});
  const Error error = inner.within(Where{.file = "outer", .sample = 9, .key = "k", .rank = 2});
  EXPECT_STREQ(error.what(), "rank 2: inner: sample 0: key k: bad");
}

TEST(Error, TheFirstRankThatIsNamedStays) {
  const Error error(ErrorKind::io, "bad");
  EXPECT_EQ(error.at_rank(0).where().rank, 0);
  EXPECT_EQ(error.at_rank(4).at_rank(5).where().rank, 4);
}

TEST(Error, EveryKindSurvivesTheTextForm) {
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::cancelled); ++kind) {
    const Error error(static_cast<ErrorKind>(kind), "happened", "remedy",
                      Where{.file = "f", .offset = ~0ULL, .sample = 0, .key = "k", .rank = 1});
    expect_equal(parse_error(serialize(error)), error);
  }
}

TEST(Error, EmptyFieldsAndOddCharactersSurviveTheTextForm) {
  const Error plain(ErrorKind::usage, "");
  expect_equal(parse_error(serialize(plain)), plain);
  const Error odd(ErrorKind::io, "quote \" backslash \\ newline \n", "\xc3\xa4",
                  Where{.file = "{"});
  expect_equal(parse_error(serialize(odd)), odd);
}

TEST(Error, APathThatIsNotUtf8DoesNotFailTheFailure) {
  const Error error(ErrorKind::io, "bad", "", Where{.file = "caf\xe9"});
  EXPECT_EQ(parse_error(serialize(error)).happened(), "bad");
}

TEST(Error, GarbageBecomesACommunicationErrorThatQuotesIt) {
  for (const std::string text : {"", "garbage", "{", "[]", "7", "null", "{\"kind\":\"io\"}",
                                 "{\"kind\":3,\"happened\":1}", "\xff\xfe"}) {
    const Error error = parse_error(text);
    EXPECT_EQ(error.kind(), ErrorKind::communication) << text;
    EXPECT_THAT(error.what(), HasSubstr(text));
  }
  EXPECT_LT(std::string(parse_error(std::string(100'000, 'x')).what()).size(), 400U);
}

TEST(PrintableKey, ShowsTextAsItselfAndBytesAsHexadecimal) {
  EXPECT_EQ(printable_key("00000042"), "00000042");
  EXPECT_EQ(printable_key(std::string_view("\0\1\xff", 3)), "0x0001ff");
  EXPECT_EQ(printable_key("has space"), "0x686173207370616365");
  EXPECT_EQ(printable_key(""), "0x");
}

TEST(PrintableKey, IsShortenedInTheMiddle) {
  const std::string key = printable_key(std::string(500, 'a') + std::string(11, 'z'), 21);
  EXPECT_EQ(key, "aaaaaaaaa...zzzzzzzzz");
}

}  // namespace
}  // namespace forebay
