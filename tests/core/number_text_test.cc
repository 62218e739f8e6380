#include "core/number_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "forebay/error.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

TEST(ParseBytes, KnowsBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("0", "n"), 0U);
  EXPECT_EQ(parse_bytes("1234", "n"), 1234U);
  EXPECT_EQ(parse_bytes("12B", "n"), 12U);
  EXPECT_EQ(parse_bytes("512K", "n"), 512U * 1024);
  EXPECT_EQ(parse_bytes("64MiB", "n"), 64U << 20);
  EXPECT_EQ(parse_bytes("2.5GiB", "n"), 5ULL << 29);
  EXPECT_EQ(parse_bytes("1.5MB", "n"), 1'500'000U);
  EXPECT_EQ(parse_bytes("1T", "n"), 1ULL << 40);
  EXPECT_EQ(parse_bytes("18446744073709551615", "n"), ~0ULL);
  EXPECT_EQ(parse_bytes("0.3K", "n"), 307U);
}

TEST(ParseBytes, RefusesWhatItWouldHaveToGuess) {
  for (const char* text : {"",
                           "K",
                           "-1",
                           "+1",
                           " 1",
                           "1 ",
                           "1 K",
                           "1.2.3K",
                           ".5K",
                           "5.K",
                           "1e3",
                           "0x10",
                           "1m",
                           "1Ki",
                           "1KiBB",
                           "nan",
                           "1,5K",
                           ".",
                           "98765432109876543210",
                           "16777216T",
                           "99999999.5T",
                           "1.5\n"}) {
    EXPECT_THAT(message_of([&] { parse_bytes(text, "stage-bytes"); }), HasSubstr("stage-bytes"))
        << "'" << text << "'";
  }
}

TEST(ParseBytes, MessageQuotesTheTextAndShowsTheForm) {
  EXPECT_THAT(message_of([] { parse_bytes("64Mb", "memory"); }),
              AllOf(HasSubstr("'64Mb'"), HasSubstr("unit 'Mb'"), HasSubstr("64MiB")));
}

TEST(ParseDuration, KnowsItsUnits) {
  EXPECT_EQ(parse_duration("5s", "n"), 5s);
  EXPECT_EQ(parse_duration("200ms", "n"), 200ms);
  EXPECT_EQ(parse_duration("1.5min", "n"), 90s);
  EXPECT_EQ(parse_duration("2h", "n"), 2h);
  EXPECT_EQ(parse_duration("0.5us", "n"), 500ns);
  EXPECT_THAT(message_of([] { parse_duration("5", "timeout"); }), HasSubstr("no unit"));
  EXPECT_THAT(message_of([] { parse_duration("9999999h", "timeout"); }), HasSubstr("too large"));
}

TEST(ParseCount, ChecksItsRange) {
  EXPECT_EQ(parse_count("7", "batch", 1), 7U);
  EXPECT_THAT(message_of([] { parse_count("0", "batch", 1); }), HasSubstr("of at least 1"));
  EXPECT_THAT(message_of([] { parse_count("9", "roots", 1, 8); }), HasSubstr("from 1 to 8"));
  for (const char* text : {"", "-1", "1.0", "1x", " 1"}) {
    EXPECT_NE(message_of([&] { parse_count(text, "batch"); }), "") << text;
  }
}

TEST(FormatBytes, IsShortForPeople) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(200ULL << 20), "200 MiB");
  EXPECT_EQ(format_bytes(5ULL << 29), "2.5 GiB");
}

TEST(ExactText, ReadsBackAsTheSame) {
  EXPECT_EQ(exact_bytes(64 << 20), "64MiB");
  EXPECT_EQ(exact_bytes(5ULL << 29), "2560MiB");
  EXPECT_EQ(exact_bytes(0), "0B");
  EXPECT_EQ(exact_duration(90s), "90s");
  EXPECT_EQ(exact_duration(1500ms), "1500ms");
  EXPECT_EQ(exact_duration(0s), "0ns");
  std::mt19937_64 random(1);
  for (int i = 0; i < test::random_cases(1000); ++i) {
    const std::uint64_t value = random() >> (random() % 64);
    EXPECT_EQ(parse_bytes(exact_bytes(value), "n"), value);
    const std::chrono::nanoseconds duration(static_cast<std::int64_t>(value >> 1));
    EXPECT_EQ(parse_duration(exact_duration(duration), "n"), duration);
  }
}

}  // namespace
}  // namespace forebay
