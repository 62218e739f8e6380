// The text form: what reads, what it means, and what bad texts and fields say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forebay/error.hpp"
#include "forebay/transform.hpp"

namespace forebay {
namespace {

using testing::HasSubstr;

std::string again(const std::string& text) { return Transform::parse(text).to_text(); }

TEST(TransformText, IsWrittenAsItIsRead) {
  for (const std::string text :
       {"", "resize=256", "resize=1x65535", "crop=224x192:random,flip,vflip=1",
        "random-resized-crop=224x224,rgb,gray,swap", "random-resized-crop=8x9:0.5-1",
        "random-resized-crop=8x9:0.08-1:0.5-2", "flip=0.25,pad=4,to-float",
        "cast=f16,normalize=0.485:-0.456:0.406/0.229", "from=hwc,full-decode,resize=1,layout=hwc",
        "picture:flip", "normalize=0.00000012345/1"}) {
    EXPECT_EQ(again(text), text);
  }
}

TEST(TransformText, HasShortForms) {
  EXPECT_EQ(again("crop=224"), "crop=224x224");
  EXPECT_EQ(again("crop=224:center"), "crop=224x224");
  EXPECT_EQ(again("random-resized-crop=224"), "random-resized-crop=224x224");
  EXPECT_EQ(again("random-resized-crop=224:0.08-1"), "random-resized-crop=224x224");
  EXPECT_EQ(again("flip=0.5,layout=chw"), "flip");
  EXPECT_TRUE(Transform::parse("layout=chw").empty());
  EXPECT_FALSE(Transform::parse("layout=hwc").empty());
  EXPECT_EQ(Transform::parse("x.y-z:flip").field(), "x.y-z");
}

TEST(TransformText, BadOnesAreRefusedByName) {
  for (const std::string text : {",",
                                 "flip,",
                                 ",flip",
                                 "flop",
                                 "flip=2",
                                 "flip=-0.1",
                                 "flip=x",
                                 "flip=nan",
                                 "flip=",
                                 "resize",
                                 "resize=",
                                 "resize=0",
                                 "resize=70000",
                                 "resize=4x",
                                 "resize=x4",
                                 "resize=4x5x6",
                                 "crop",
                                 "crop=4:middle",
                                 "crop=4x4:random:random",
                                 "random-resized-crop=",
                                 "random-resized-crop=4:0-1",
                                 "random-resized-crop=4:0.5",
                                 "random-resized-crop=4:1-0.5",
                                 "random-resized-crop=4:0.5-2",
                                 "random-resized-crop=4:0.5-1:0-1",
                                 "random-resized-crop=4:0.5-1:1-2:3",
                                 "pad=-1",
                                 "pad=x",
                                 "gray=1",
                                 "to-float=255",
                                 "cast",
                                 "cast=f8",
                                 "normalize=1",
                                 "normalize=1/0",
                                 "normalize=1:2/1",
                                 "normalize=1:2:3:4/1",
                                 "normalize=1/1/1",
                                 "normalize=inf/1",
                                 "normalize=1e999/1",
                                 "layout=hwc,flip",
                                 "layout=wch",
                                 "flip,from=hwc",
                                 "flip,full-decode",
                                 "full-decode=1",
                                 "image:",
                                 ":flip",
                                 "a b:flip",
                                 "image:image:flip",
                                 "resize = 4",
                                 "RESIZE=4",
                                 "resize=+4",
                                 "resize=18446744073709551617"}) {
    try {
      Transform::parse(text);
      ADD_FAILURE() << "'" << text << "' reads";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << text;
      EXPECT_FALSE(error.remedy().empty()) << text;
    }
  }
  std::string many = "flip";
  for (int i = 0; i < 64; ++i) many += ",flip";
  EXPECT_THROW(Transform::parse(many), Error);
}

std::string refusal(const std::string& text, const Field& field) {
  try {
    Transform::parse(text).output(field);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  ADD_FAILURE() << text << " fits";
  return {};
}

TEST(TransformShapes, FieldsThatDoNotFitNameTheStepAndTheShape) {
  const Field color{"image", ElementType::u8, {3, 20, 30}},
      gray{"image", ElementType::u8, {1, 20, 30}};
  EXPECT_THAT(refusal("resize=10x10,crop=11", color),
              testing::AllOf(HasSubstr("'crop=11x11'"), HasSubstr("u8[3x10x10]")));
  EXPECT_THAT(refusal("normalize=1/2", color), HasSubstr("to-float"));
  EXPECT_THAT(refusal("cast=i32,normalize=1/2", color), HasSubstr("i32[3x20x30]"));
  EXPECT_THAT(refusal("to-float,to-float", color), HasSubstr("f32"));
  EXPECT_THAT(refusal("swap", gray), HasSubstr("rgb"));
  EXPECT_THAT(refusal("to-float,normalize=1:2:3/1", gray), HasSubstr("3 channels"));
  EXPECT_THAT(refusal("resize=65535x65535", color), HasSubstr("more than"));
  EXPECT_THAT(refusal("resize=65535", {"image", ElementType::u8, {1, 1, 65535}}),
              HasSubstr("more"));
  EXPECT_THAT(refusal("flip", {"image", ElementType::u8, {4, 20, 30}}), HasSubstr("from=hwc"));
  EXPECT_THAT(refusal("flip", {"image", ElementType::u8, {20}}), HasSubstr("image"));
  EXPECT_THAT(refusal("flip", {"image", ElementType::i64, {3, 20, 30}}), HasSubstr("i64"));
  EXPECT_EQ(Transform::parse("pad=3,crop=26x36").output(color).shape,
            (std::vector<std::uint64_t>{3, 26, 36}));
}

TEST(TransformShapes, BuffersOfOtherSizesAreRefused) {
  const Transform transform = Transform::parse("to-float");
  const Field field{"image", ElementType::u8, {1, 2, 3}};
  std::vector<std::byte> image(6), out(24), large(25);
  EXPECT_NO_THROW(transform.apply(field, image, 0, out));
  EXPECT_THROW(transform.apply(field, image, 0, large), Error);
  EXPECT_THROW(transform.apply(field, std::span(image).first(5), 0, out), Error);
}

}  // namespace
}  // namespace forebay
