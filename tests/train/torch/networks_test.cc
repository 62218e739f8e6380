// Networks are checked for what their papers state (sizes), for what data parallelism rests on
// (equal seeds give equal numbers, flat gradients are the gradients) and for learning at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "forebay/error.hpp"
#include "train/net_catalog.hpp"
#include "train/solver.hpp"
#include "train/torch/torch_network.hpp"

namespace forebay {
namespace {

using ::testing::HasSubstr;

/// Random pictures whose label is the brighter half: 0 = upper, 1 = lower.
struct Pictures {
  Shape shape;
  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> labels;

  Pictures(const Shape& image, std::size_t count, unsigned seed) : shape(image) {
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < count; ++i) {
      labels.push_back(random() % 2);
      for (std::uint64_t at = 0; at < elements_of(shape); ++at) {
        const std::uint64_t row = at / shape[2] % shape[1];
        const bool bright = (row < shape[1] / 2) == (labels.back() == 0);
        pixels.push_back(static_cast<std::uint8_t>(random() % 128 + (bright ? 128 : 0)));
      }
    }
  }

  TrainingBatch batch(std::size_t from, std::size_t count) const {
    const std::size_t bytes = elements_of(shape);
    return {.count = count,
            .inputs = std::as_bytes(std::span(pixels).subspan(from * bytes, count * bytes)),
            .type = ElementType::u8,
            .shape = shape,
            .labels = std::span(labels).subspan(from, count),
            .targets = {}};
  }
};

NetworkOptions options_for(const char* name, const Shape& input, std::uint64_t outputs) {
  const NetInfo& info = find_net(name);
  return {.net = name,
          .input = input,
          .outputs = outputs,
          .seed = 7,
          .mean = info.mean,
          .scale = info.scale};
}

std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

TEST(Networks, HaveThePublishedNumberOfParameters) {
  const auto parameters = [](const char* net, const Shape& input, std::uint64_t classes) {
    return make_torch_network(options_for(net, input, classes))->parameters().size();
  };
  EXPECT_EQ(parameters("lenet", {1, 28, 28}, 10), 431'080U);
  EXPECT_EQ(parameters("cifar10_full", {3, 32, 32}, 10), 89'578U);
  EXPECT_EQ(parameters("caffenet", {3, 227, 227}, 1000), 60'965'224U);
  EXPECT_EQ(parameters("caffenet_small", {3, 67, 67}, 1000), 961'608U);
  EXPECT_EQ(parameters("resnet50", {3, 224, 224}, 1000), 25'557'032U);
}

TEST(Networks, OnlyBatchNormalizationHasStatistics) {
  EXPECT_EQ(make_torch_network(options_for("lenet", {1, 28, 28}, 10))->statistics_count(), 0U);
  EXPECT_EQ(make_torch_network(options_for("resnet50", {3, 224, 224}, 10))->statistics_count(),
            53'120U);
}

TEST(Networks, EqualSeedsGiveEqualParametersOtherSeedsDoNot) {
  NetworkOptions options = options_for("lenet", {1, 28, 28}, 10);
  const auto first = copy(make_torch_network(options)->parameters());
  EXPECT_EQ(first, copy(make_torch_network(options)->parameters()));
  options.seed = 8;
  EXPECT_NE(first, copy(make_torch_network(options)->parameters()));
}

TEST(Networks, RepeatedPassesGiveTheSameNumbers) {
  const Pictures pictures(Shape{3, 32, 32}, 8, 1);
  const auto pass = [&] {
    const auto network = make_torch_network(options_for("cifar10_full", pictures.shape, 10));
    network->forward(pictures.batch(0, 8), 1);
    network->backward({});
    return copy(network->gradients());
  };
  EXPECT_EQ(pass(), pass());
}

TEST(Networks, BackwardOverwritesTheGradients) {
  const Pictures pictures(Shape{1, 28, 28}, 8, 1);
  const auto network = make_torch_network(options_for("lenet", pictures.shape, 10));
  network->forward(pictures.batch(0, 8), 1);
  network->backward({});
  const auto first = copy(network->gradients());
  network->forward(pictures.batch(0, 8), 1);
  network->backward({});
  EXPECT_EQ(first, copy(network->gradients()));
}

TEST(Networks, BackwardAddsAndWeighsGradientsWhereAskedTo) {
  const Pictures pictures(Shape{1, 28, 28}, 8, 1);
  const auto network = make_torch_network(options_for("lenet", pictures.shape, 10));
  const auto pass = [&](const BackwardPass& how) {
    network->forward(pictures.batch(0, 8), 1);
    network->backward(how);
    return copy(network->gradients());
  };
  const auto once = pass({});
  const auto three = pass({.weight = 3});
  const auto four = pass({.add = true});
  for (std::size_t i = 0; i < once.size(); ++i) {
    EXPECT_NEAR(three[i], 3 * once[i], 1e-4);
    EXPECT_NEAR(four[i], 4 * once[i], 1e-4);
  }
}

TEST(Networks, PartsCoverTheParametersWithoutGaps) {
  for (const char* net : {"lenet", "resnet50"}) {
    const auto network = make_torch_network(options_for(net, {3, 64, 64}, 10));
    std::set<std::string> names;
    std::size_t end = 0;
    for (const Part& part : network->parts()) {
      EXPECT_EQ(part.offset, end);
      end += part.size();
      names.insert(part.name);
    }
    EXPECT_EQ(end, network->parameters().size());
    EXPECT_EQ(names.size(), network->parts().size());
  }
}

TEST(Networks, TellOfEachPartOnceWhenItsGradientIsFinal) {
  for (const char* net : {"lenet", "resnet50"}) {
    const Pictures pictures(Shape{1, 64, 64}, 1, 1);
    const auto network = make_torch_network(options_for(net, pictures.shape, 10));
    for (const bool add : {false, true}) {
      std::vector<std::size_t> told;
      std::vector<float> then(network->parameters().size());
      network->forward(pictures.batch(0, 1), 1);
      network->backward({.add = add, .ready = [&](std::size_t number) {
                           told.push_back(number);
                           const Part& part = network->parts()[number];
                           std::ranges::copy(
                               network->gradients().subspan(part.offset, part.size()),
                               then.begin() + static_cast<std::ptrdiff_t>(part.offset));
                         }});
      EXPECT_EQ(then, copy(network->gradients())) << net;
      EXPECT_EQ(told.size(), network->parts().size());
      EXPECT_EQ(std::set(told.begin(), told.end()).size(), told.size());
      // From the last layer to the first.
      EXPECT_GE(told.front(), told.size() - 2) << net;
      EXPECT_LE(told.back(), 2U) << net;
    }
  }
}

TEST(Networks, GradientsAgreeWithFiniteDifferences) {
  const Pictures pictures(Shape{1, 28, 28}, 4, 1);
  const auto network = make_torch_network(options_for("lenet", pictures.shape, 10));
  network->forward(pictures.batch(0, 4), 1);
  network->backward({});
  const std::span<float> weights = network->parameters();
  // The last inner product is smooth in its weights; its biases end the array.
  for (std::size_t i = weights.size() - 10; i < weights.size(); ++i) {
    constexpr float kStep = 1e-2F;
    const float kept = weights[i];
    weights[i] = kept + kStep;
    const float above = network->forward(pictures.batch(0, 4), 1);
    weights[i] = kept - kStep;
    const float below = network->forward(pictures.batch(0, 4), 1);
    weights[i] = kept;
    EXPECT_NEAR(network->gradients()[i], (above - below) / (2 * kStep), 1e-3);
  }
}

TEST(Networks, HalvesOfABatchAverageToTheGradientOfTheWhole) {
  const Pictures pictures(Shape{1, 28, 28}, 8, 2);
  const auto network = make_torch_network(options_for("lenet", pictures.shape, 10));
  const auto gradients = [&](std::size_t from, std::size_t count) {
    network->forward(pictures.batch(from, count), 1);
    network->backward({});
    return copy(network->gradients());
  };
  const auto whole = gradients(0, 8);
  const auto left = gradients(0, 2);
  const auto right = gradients(2, 6);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(whole[i], left[i] * 2 / 8 + right[i] * 6 / 8, 1e-5);
  }
}

TEST(Networks, DropoutFollowsItsSeedAlone) {
  const Pictures pictures(Shape{3, 32, 32}, 2, 1);
  const auto network = make_torch_network(options_for("caffenet", pictures.shape, 10));
  const float first = network->forward(pictures.batch(0, 2), 11);
  EXPECT_NE(first, network->forward(pictures.batch(0, 2), 12));
  EXPECT_EQ(first, network->forward(pictures.batch(0, 2), 11));
}

TEST(Networks, EvaluationChangesNothing) {
  const Pictures pictures(Shape{3, 64, 64}, 2, 1);
  const auto network = make_torch_network(options_for("resnet50", pictures.shape, 2));
  const auto parameters = copy(network->parameters());
  const auto statistics = copy(network->statistics());
  const Score score = network->evaluate(pictures.batch(0, 2));
  EXPECT_EQ(score.loss, network->evaluate(pictures.batch(0, 2)).loss);
  EXPECT_EQ(parameters, copy(network->parameters()));
  EXPECT_EQ(statistics, copy(network->statistics()));
  network->forward(pictures.batch(0, 2), 1);
  EXPECT_NE(statistics, copy(network->statistics()));
}

TEST(Networks, EvaluationOfNothingIsZero) {
  const Pictures pictures(Shape{1, 28, 28}, 1, 1);
  const auto network = make_torch_network(options_for("lenet", pictures.shape, 2));
  EXPECT_EQ(network->evaluate(pictures.batch(0, 0)).correct, 0U);
}

TEST(Networks, LenetLearnsWhichHalfIsBrighter) {
  const Pictures pictures(Shape{1, 28, 28}, 640, 3);
  const auto network = make_torch_network(options_for("lenet", pictures.shape, 2));
  Solver solver({}, network->parameters().size());
  for (std::size_t i = 0; i < 20; ++i) {
    network->forward(pictures.batch(i * 32 % 608, 32), i);
    network->backward({});
    solver.update(network->parameters(), network->gradients(), {i, 0});
  }
  const Pictures unseen(pictures.shape, 100, 4);
  EXPECT_GT(network->evaluate(unseen.batch(0, 100)).correct, 95U);
}

TEST(Networks, TakeLargerAndSmallerImagesThanTheirInput) {
  for (const Shape& shape : {Shape{1, 40, 33}, Shape{1, 20, 28}}) {
    const Pictures pictures(shape, 2, 1);
    const auto network = make_torch_network(options_for("lenet", shape, 10));
    EXPECT_TRUE(std::isfinite(network->forward(pictures.batch(0, 2), 1))) << to_string(shape);
  }
}

TEST(Networks, RefuseABatchOfAnotherShape) {
  const Pictures pictures(Shape{3, 28, 28}, 2, 1);
  const auto network = make_torch_network(options_for("lenet", {1, 28, 28}, 10));
  try {
    network->forward(pictures.batch(0, 2), 1);
    FAIL() << "a batch of another shape was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("3x28x28"));
    EXPECT_THAT(error.what(), HasSubstr("1x28x28"));
  }
}

}  // namespace
}  // namespace forebay
