// What the trainer needs from a network: flat arrays of numbers and two passes over a batch.
//
//   parameters   w[0..P)          what the solver updates
//   exchange     [ gradients P | statistics S | loss 1 | weight 1 ]
//                                 one contiguous array, so that one all-reduce carries all of it
//   parts        both arrays are cut alike into the network's tensors, in the order in which the
//                forward pass needs them; the backward pass tells when each one's gradient is
//                final, so that its sum over ranks can begin while the pass goes on
//
// Statistics are the running means and variances of batch normalization (none in most networks).
// Averaging them with the gradients keeps every rank's network identical after every iteration. The
// weight is for the caller: the number of samples behind the others.
//
// No type of the deep-learning library appears here: its headers cost half a minute a file.
// All methods are local; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/non_copyable.hpp"
#include "forebay/dataset.hpp"

namespace forebay {

// The extents of one sample, and which of them is that of the channels.

/// Slowest first: channel, height, width of an image.
using Shape = std::vector<std::uint64_t>;

/// "3x32x32"
std::string to_string(const Shape& shape);

/// 1 for an empty shape. Shapes come from a schema, whose product fits 64 bits.
std::uint64_t elements_of(const Shape& shape);

/// Networks over space or time take channels in front (12x128x128x128) as well as behind
/// (128x128x128x12, as the papers' files have them). A cube has three equal sides, and a series is
/// longer than it has channels; where that leaves it open, channels are behind.
/// Throws unsupported when `shape` is not that of channels over `axes` axes, 1 or 3.
bool channels_first(const Shape& shape, int axes);

/// The same values with channels in front.
Shape with_channels_first(const Shape& shape, int axes);

/// What a network is to say of a sample: which of some classes it is, or some numbers.
enum class Task : std::uint8_t { classify, regress };

/// Decoded samples, one after the other; not owned.
struct TrainingBatch {
  std::size_t count = 0;
  std::span<const std::byte> inputs;  ///< count * elements_of(shape), of `type`
  ElementType type = ElementType::u8;
  Shape shape;  ///< of one input
  /// To classify: count of them, each in [0, classes): the caller has checked.
  std::span<const std::int64_t> labels;
  std::span<const float> targets;  ///< to regress: count * outputs
};

struct NetworkOptions {
  std::string net;  ///< a name of net_catalog()
  Shape input;
  std::uint64_t outputs = 10;  ///< classes, or numbers
  std::uint64_t seed = 1;      ///< equal seeds give equal parameters, bit by bit
  float mean = 0;              ///< subtracted from every input,
  float scale = 1;             ///< which is then multiplied by this
};

/// Sums over the samples of a batch.
struct Score {
  double loss = 0;
  std::uint64_t correct = 0;  ///< to classify
};

/// One tensor of parameters: [offset, offset + size()) of parameters() and of gradients().
struct Part {
  std::string name;  ///< of its own
  std::size_t offset = 0;
  std::vector<std::uint64_t> shape;

  std::size_t size() const;
};

/// Told of a part, by its number, whose gradient does not change any more in this pass.
using GradientListener = std::function<void(std::size_t part)>;

struct BackwardPass {
  float weight = 1;  ///< gradients are those of the loss times this
  bool add = false;  ///< to the gradients of the passes before, instead of overwriting them
  /// Called once for each part, within the pass and by its thread; the order is the network's.
  GradientListener ready;
};

class Network : private NonCopyable {
 public:
  virtual ~Network() = default;

  // Views that live as long as the network.
  virtual std::span<float> parameters() = 0;
  virtual std::span<float> exchange() = 0;
  virtual std::size_t statistics_count() const = 0;
  /// In forward order, without gaps. Equal for equal options.
  virtual std::span<const Part> parts() const = 0;

  std::span<float> gradients() { return exchange().first(parameters().size()); }
  std::span<float> statistics() {
    return exchange().subspan(parameters().size(), statistics_count());
  }
  /// All but the gradients.
  std::span<float> tail() { return exchange().subspan(parameters().size()); }
  float& loss() { return exchange()[exchange().size() - 2]; }
  float& weight() { return exchange().back(); }

  /// Training pass over at least one sample; returns the mean loss: cross entropy, or the mean
  /// squared error of the outputs. `noise` seeds what is random in it (dropout).
  virtual float forward(const TrainingBatch& batch, std::uint64_t noise) = 0;
  /// Gradients of the last forward pass; parts that it did not use have none: zeros.
  virtual void backward(const BackwardPass& pass) = 0;
  /// Inference pass without randomness; changes nothing.
  virtual Score evaluate(const TrainingBatch& batch) = 0;
};

/// What stands in Network::exchange() behind gradients and statistics.
inline constexpr std::size_t kExchangeTail = 2;

inline std::size_t Part::size() const {
  std::size_t size = 1;
  for (const std::uint64_t extent : shape) size *= extent;
  return size;
}

using NetworkFactory = std::function<std::unique_ptr<Network>(const NetworkOptions&)>;

}  // namespace forebay
