#include "sync/summation.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/clock.hpp"
#include "core/half.hpp"

namespace forebay {
namespace {

constexpr std::size_t kBlock = 1024;  // elements

void narrow(const float* from, TensorType wire, std::byte* into, std::size_t elements) {
  if (wire == TensorType::float16) {
    narrow_float16(from, into, elements);
  } else {
    narrow_bfloat16(from, into, elements);
  }
}

void widen(TensorType wire, const std::byte* from, float* into, std::size_t elements) {
  if (wire == TensorType::float16) {
    widen_float16(from, into, elements);
  } else {
    widen_bfloat16(from, into, elements);
  }
}

/// Calls `act(first, count)` for consecutive blocks of elements.
template <typename Act>
void in_blocks(std::size_t elements, Act act) {
  for (std::size_t first = 0; first < elements; first += kBlock) {
    act(first, std::min(kBlock, elements - first));
  }
}

/// Converts in pieces, so that no step takes long.
class WireSum final : public Summation {
 public:
  WireSum(std::unique_ptr<Summation> inner, WireFormat wire)
      : inner_(std::move(inner)), wire_format_(wire) {}

  bool free() const override { return inner_->free(); }

  std::span<std::byte> begin(TensorType type, Combination how, std::size_t bytes) override {
    type_ = type;
    wire_ = wire_type(type, wire_format_);
    if (!converts()) return inner_->begin(type, how, bytes);
    if (numbers_.size() < bytes) numbers_.resize(bytes);
    bytes_ = bytes;
    bits_ = inner_->begin(wire_, how, bytes / size_of(type) * kWireBytes);
    return std::span(numbers_).first(bytes);
  }

  void start() override {
    if (!converts()) return inner_->start();
    phase_ = Phase::narrowing;
    converted_ = 0;
  }

  std::optional<Rest> step() override {
    if (!converts()) return inner_->step();
    if (phase_ == Phase::narrowing) return narrow_some();
    if (phase_ == Phase::summing) {
      if (const auto rest = inner_->step()) return rest;
      phase_ = Phase::widening;
      converted_ = 0;
    }
    return widen_some();
  }

  std::span<const std::byte> result() const override {
    return converts() ? std::span<const std::byte>(numbers_).first(bytes_) : inner_->result();
  }

  void release() override { inner_->release(); }

 private:
  enum class Phase : std::uint8_t { narrowing, summing, widening };
  static constexpr std::size_t kWireBytes = 2;
  static constexpr std::size_t kElementsOfStep = std::size_t{1} << 17;

  bool converts() const { return wire_ != type_; }

  /// The next elements to convert, empty after the last.
  std::pair<std::size_t, std::size_t> next_piece() {
    const std::size_t first = converted_;
    converted_ = std::min(first + kElementsOfStep, bytes_ / size_of(type_));
    return {first, converted_ - first};
  }

  std::optional<Rest> narrow_some() {
    const auto [first, count] = next_piece();
    if (count > 0) {
      to_wire(type_, std::span(numbers_).subspan(first * size_of(type_), count * size_of(type_)),
              wire_, bits_.subspan(first * kWireBytes, count * kWireBytes));
      return Rest(0);
    }
    phase_ = Phase::summing;
    inner_->start();
    return Rest(0);
  }

  std::optional<Rest> widen_some() {
    const auto [first, count] = next_piece();
    if (count == 0) return std::nullopt;
    from_wire(wire_, inner_->result().subspan(first * kWireBytes, count * kWireBytes), type_,
              std::span(numbers_).subspan(first * size_of(type_), count * size_of(type_)));
    return Rest(0);
  }

  std::unique_ptr<Summation> inner_;
  WireFormat wire_format_;
  TensorType type_ = TensorType::float32;
  TensorType wire_ = TensorType::float32;
  Phase phase_ = Phase::narrowing;
  std::vector<std::byte> numbers_;
  std::size_t bytes_ = 0;
  std::span<std::byte> bits_;
  std::size_t converted_ = 0;  ///< elements
};

}  // namespace

TensorType wire_type(TensorType type, WireFormat wire) {
  if (type != TensorType::float32 && type != TensorType::float64) return type;
  if (wire == WireFormat::float16) return TensorType::float16;
  return wire == WireFormat::bfloat16 ? TensorType::bfloat16 : type;
}

void to_wire(TensorType type, std::span<const std::byte> numbers, TensorType wire,
             std::span<std::byte> bits) {
  std::array<double, kBlock> wide;
  std::array<float, kBlock> block;
  in_blocks(numbers.size() / size_of(type), [&](std::size_t first, std::size_t count) {
    const std::byte* const from = numbers.data() + first * size_of(type);
    if (type == TensorType::float64) {
      std::memcpy(wide.data(), from, count * sizeof(double));
      for (std::size_t i = 0; i < count; ++i) block[i] = static_cast<float>(wide[i]);
    } else {
      std::memcpy(block.data(), from, count * sizeof(float));
    }
    narrow(block.data(), wire, bits.data() + 2 * first, count);
  });
}

void from_wire(TensorType wire, std::span<const std::byte> bits, TensorType type,
               std::span<std::byte> numbers) {
  std::array<double, kBlock> wide;
  std::array<float, kBlock> block;
  in_blocks(bits.size() / 2, [&](std::size_t first, std::size_t count) {
    std::byte* const into = numbers.data() + first * size_of(type);
    widen(wire, bits.data() + 2 * first, block.data(), count);
    if (type == TensorType::float64) {
      std::copy_n(block.begin(), count, wide.begin());
      std::memcpy(into, wide.data(), count * sizeof(double));
    } else {
      std::memcpy(into, block.data(), count * sizeof(float));
    }
  });
}

std::unique_ptr<Summation> over_wire(std::unique_ptr<Summation> inner, WireFormat wire) {
  if (wire == WireFormat::as_is) return inner;
  return std::make_unique<WireSum>(std::move(inner), wire);
}

}  // namespace forebay
