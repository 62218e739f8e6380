// The networks of paper 003's applications: their sizes, and that they learn numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "forebay/error.hpp"
#include "train/net_catalog.hpp"
#include "train/solver.hpp"
#include "train/torch/torch_network.hpp"

namespace forebay {
namespace {

using ::testing::HasSubstr;

NetworkOptions options_for(const char* name, const Shape& input, std::uint64_t outputs) {
  return {.net = name, .input = input, .outputs = outputs, .seed = 7, .mean = 0, .scale = 1};
}

std::size_t parameters(const char* net, const Shape& input, std::uint64_t outputs) {
  const std::size_t count =
      make_torch_network(options_for(net, input, outputs))->parameters().size();
  testing::Test::RecordProperty(std::string(net) + "_of_" + to_string(input),
                                std::to_string(count));
  return count;
}

/// Noise around a level of its own in every sample; targets: that level, and its half.
struct Levels {
  Shape shape;
  std::vector<float> inputs;
  std::vector<float> targets;

  Levels(const Shape& sample, std::size_t count, unsigned seed) : shape(sample) {
    std::mt19937 random(seed);
    const auto uniform = [&random] { return static_cast<float>(random() % 2001) / 1000 - 1; };
    for (std::size_t i = 0; i < count; ++i) {
      const float level = uniform();
      for (std::uint64_t at = 0; at < elements_of(shape); ++at) {
        inputs.push_back(level + uniform());
      }
      targets.insert(targets.end(), {level, level / 2});
    }
  }

  TrainingBatch batch(std::size_t from, std::size_t count) const {
    const std::size_t size = elements_of(shape);
    return {.count = count,
            .inputs = std::as_bytes(std::span(inputs).subspan(from * size, count * size)),
            .type = ElementType::f32,
            .shape = shape,
            .labels = {},
            .targets = std::span(targets).subspan(2 * from, 2 * count)};
  }
};

TEST(Applications, HaveTheNumberOfParametersThatThePaperStates) {
  EXPECT_EQ(parameters("cosmoflow", {128, 128, 128, 12}, 4), 9'442'100U);  // 9.4 M
  EXPECT_EQ(parameters("neuron", {1600, 3}, 19), 3'172'563U);              // 3.2 M
}

TEST(Applications, TakeSmallerSamplesByPoolingLess) {
  EXPECT_EQ(parameters("cosmoflow", {32, 32, 32, 12}, 4), 9'442'100U);
  EXPECT_EQ(parameters("cosmoflow", {12, 4, 4, 4}, 4), 9'442'100U);
  for (const std::uint64_t side : {1U, 2U, 3U, 5U, 12U}) {
    const Levels cubes({side, side, side, 2}, 2, 1);
    const auto network = make_torch_network(options_for("cosmoflow", cubes.shape, 2));
    EXPECT_TRUE(std::isfinite(network->forward(cubes.batch(0, 2), 1))) << side;
  }
  for (const std::uint64_t length : {4U, 7U, 8U, 100U}) {
    const Levels series({length, 3}, 2, 1);
    const auto network = make_torch_network(options_for("neuron", series.shape, 2));
    EXPECT_TRUE(std::isfinite(network->forward(series.batch(0, 2), 1))) << length;
  }
}

TEST(Applications, ChannelsMayStandInFrontOrBehind) {
  const Levels behind({32, 3}, 1, 1);
  Levels in_front({3, 32}, 1, 1);
  for (std::size_t i = 0; i < 96; ++i) in_front.inputs[i % 3 * 32 + i / 3] = behind.inputs[i];
  in_front.targets = behind.targets;
  EXPECT_EQ(
      make_torch_network(options_for("neuron", {32, 3}, 2))->forward(behind.batch(0, 1), 1),
      make_torch_network(options_for("neuron", {3, 32}, 2))->forward(in_front.batch(0, 1), 1));
}

TEST(Applications, CountsOfSixteenBitsKeepTheirUpperHalf) {
  const std::vector<float> targets{0};
  const auto loss = [&](auto number, ElementType type) {
    const std::vector numbers(8, number);
    const auto network = make_torch_network(options_for("cosmoflow", {2, 2, 2, 1}, 1));
    return network->forward({.count = 1,
                             .inputs = std::as_bytes(std::span(numbers)),
                             .type = type,
                             .shape = {2, 2, 2, 1},
                             .labels = {},
                             .targets = targets},
                            1);
  };
  EXPECT_EQ(loss(std::uint16_t{60000}, ElementType::u16),
            loss(std::int32_t{60000}, ElementType::i32));
}

TEST(Applications, LossIsTheMeanSquaredErrorInTrainingAndInTests) {
  const Levels series({16, 3}, 5, 3);
  const auto network = make_torch_network(options_for("neuron", series.shape, 2));
  const float mean = network->forward(series.batch(0, 5), 1);
  EXPECT_NEAR(network->evaluate(series.batch(0, 5)).loss / 5, mean, 1e-5);
  EXPECT_EQ(network->evaluate(series.batch(0, 0)).loss, 0);
}

TEST(Applications, LearnWithAdam) {
  for (const char* net : {"cosmoflow", "neuron"}) {
    const bool cube = std::string_view(net) == "cosmoflow";
    const Levels samples(cube ? Shape{4, 4, 4, 2} : Shape{64, 3}, 320, 3);
    const auto network = make_torch_network(options_for(net, samples.shape, 2));
    Solver solver({.kind = SolverKind::adam, .rate = 5e-4, .weight_decay = 0},
                  network->parameters().size());
    for (std::size_t i = 0; i < 30; ++i) {
      network->forward(samples.batch(i * 16 % 256, 16), i);
      network->backward({});
      solver.update(network->parameters(), network->gradients(), {i, 0});
    }
    // Who always says 0 is wrong by (1/3 + 1/12) / 2 = 0.21.
    EXPECT_LT(network->evaluate(samples.batch(256, 64)).loss / 64, 0.1) << net;
  }
}

TEST(Applications, RefuseShapesThatTheyDoNotKnow) {
  for (const Shape& shape : {Shape{4, 5, 6, 1}, Shape{4, 4, 4}, Shape{0, 0, 0, 1}, Shape{}}) {
    try {
      make_torch_network(options_for("cosmoflow", shape, 4));
      FAIL() << to_string(shape);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("cubes of channels"));
    }
  }
  EXPECT_THROW(make_torch_network(options_for("neuron", {1600}, 19)), Error);
}

}  // namespace
}  // namespace forebay
