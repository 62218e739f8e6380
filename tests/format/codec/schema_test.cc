#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/format/codec/fixture.hpp"

namespace forebay::test {
namespace {

TEST(Schema, TextFormRoundTrips) {
  for (const char* text :
       {"", "image:u8[3x32x32],label:i32[]", "x:f64[7],y:i64[1x2x3x4x5]", "mean.1-a_b:f32[]"}) {
    EXPECT_EQ(to_string(parse_schema(text)), text);
  }
}

TEST(Schema, KnowsSizesAndNames) {
  const Schema schema = parse_schema(" image:u8[3x32x32] , label:i32[]");
  ASSERT_EQ(schema.fields.size(), 2U);
  EXPECT_EQ(schema.find("image")->bytes(), 3072U);
  EXPECT_EQ(schema.find("label")->bytes(), 4U);
  EXPECT_EQ(schema.find("label")->elements(), 1U);
  EXPECT_EQ(schema.find("other"), nullptr);
}

TEST(Schema, RefusesMalformedText) {
  for (const char* text :
       {"image", "image:u8", "image:u8[", "image:u8]3[", "image:u8[3x]", "image:u8[x3]",
        "image:u8[0]", "image:u8[-1]", "image:u8[3 x 3]", ":u8[3]", "a b:u8[3]", "image:u9[3]",
        "image:u8[3],", ",image:u8[3]", "a:u8[1],a:u8[1]", "a:u8[1],,b:u8[1]",
        "a:u8[99999999999999999999]", "a:f64[4294967296x4294967296]",
        "a:u8[4294967296x4294967296x4294967296]"}) {
    const Error error = error_from([&] { parse_schema(text); });
    EXPECT_EQ(error.kind(), ErrorKind::usage) << text;
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("\n"))) << text;
  }
}

}  // namespace
}  // namespace forebay::test
