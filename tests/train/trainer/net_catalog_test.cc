#include "train/net_catalog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forebay/error.hpp"

namespace forebay {
namespace {

using ::testing::HasSubstr;

TEST(FitInput, CutsTheCentreOutOfLargerImages) {
  const ImageShape image{3, 32, 40};
  const InputFit fit = fit_input(find_net("lenet"), image);
  EXPECT_FALSE(fit.resizes(image));
  EXPECT_EQ(fit.top, 2U);
  EXPECT_EQ(fit.left, 6U);
}

TEST(FitInput, LeavesImagesOfTheRightSizeAlone) {
  const ImageShape image{1, 28, 28};
  const InputFit fit = fit_input(find_net("lenet"), image);
  EXPECT_FALSE(fit.resizes(image));
  EXPECT_EQ(fit.top + fit.left, 0U);
}

TEST(FitInput, EnlargesUntilTheShorterSideFits) {
  const ImageShape image{1, 28, 56};
  const InputFit fit = fit_input(find_net("cifar10_full"), image);
  EXPECT_TRUE(fit.resizes(image));
  EXPECT_EQ(fit.resized_height, 32U);
  EXPECT_EQ(fit.resized_width, 64U);
  EXPECT_EQ(fit.left, 16U);
}

TEST(FitInput, RefusesImagesThatAreFarTooSmallAndNamesBothSizes) {
  try {
    fit_input(find_net("resnet50"), {3, 8, 9});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("3x8x9"));
    EXPECT_THAT(error.what(), HasSubstr("224x224"));
  }
  EXPECT_THROW(fit_input(find_net("lenet"), {1, 0, 28}), Error);
  EXPECT_THROW(fit_input(find_net("lenet"), {0, 28, 28}), Error);
}

TEST(FindNet, ListsTheNamesWhenThereIsNoSuchNetwork) {
  try {
    find_net("vgg");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), HasSubstr("lenet, cifar10_full, caffenet, caffenet_small, resnet50"));
  }
}

}  // namespace
}  // namespace forebay
