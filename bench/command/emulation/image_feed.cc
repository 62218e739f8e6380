#include "bench/command/emulation/image_feed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/clock.hpp"
#include "core/mix.hpp"
#include "format/codec/image.hpp"

namespace forebay::emulation {
namespace {

constexpr std::uint32_t kStored = 256;  // side of the stored images
constexpr std::uint32_t kChannels = 3;
constexpr int kQuality = 90;

/// Waves of a few directions and some noise.
std::vector<std::byte> make_file(std::uint64_t number, std::uint32_t side) {
  const ImageShape shape{.channels = kChannels, .height = side, .width = side};
  std::vector<std::byte> pixels(shape.bytes());
  std::size_t at = 0;
  for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
    const std::uint64_t key = mix_key({number, channel});
    const auto wave = [key](int shift) {
      return 1e-3 * static_cast<double>((key >> shift) % 97 + 3);
    };
    for (std::uint32_t y = 0; y < side; ++y) {
      for (std::uint32_t x = 0; x < side; ++x) {
        const double noise = static_cast<double>(mix(key + at) % 33) - 16;
        const double value = 128 + 60 * std::sin(wave(0) * x + wave(8) * y) +
                             40 * std::cos(wave(16) * x - wave(24) * y) + noise;
        pixels[at++] = static_cast<std::byte>(std::clamp(value, 0.0, 255.0));
      }
    }
  }
  return encode_jpeg(shape, pixels, kQuality);
}

}  // namespace

ImageFeed::ImageFeed(const FeedOptions& options) : options_(options) {
  if (options_.input == Input::none) return;
  const std::uint64_t values = options_.batch * kChannels * options_.side * options_.side;
  slots_.resize(std::max(options_.ahead, 1U));
  for (Slot& slot : slots_) slot.values.resize(values);
  const auto stored = std::max(kStored, static_cast<std::uint32_t>(options_.side));
  for (std::uint64_t i = 0; options_.input == Input::real && i < options_.files; ++i) {
    files_.push_back(make_file(i, stored));
  }
  costs_.resize(options_.threads);
  for (std::size_t i = 0; i < options_.threads; ++i) {
    threads_.emplace_back(fmt::format("fb-input-{}", i), options_.placement,
                          [this, i](const std::stop_token& stop) { live(stop, i); });
  }
}

ImageFeed::~ImageFeed() {
  for (HelperThread& thread : threads_) thread.request_stop();
}

bool ImageFeed::may_begin() const {
  return begun_ < (used_ + slots_.size()) * options_.batch && !error_;
}

void ImageFeed::set_busy(int change) {
  const std::int64_t now = now_ns();
  if (busy_ > 0) active_ns_ += now - busy_since_ns_;
  busy_since_ns_ = now;
  busy_ += change;
}

void ImageFeed::live(const std::stop_token& stop, std::size_t thread) {
  std::vector<std::byte> pixels;
  Lock lock(mutex_);
  while (room_.wait(lock, stop, [this] { return may_begin(); }) && !stop.stop_requested()) {
    const std::uint64_t image = begun_++;
    Slot& slot = slots_[image / options_.batch % slots_.size()];
    const std::uint64_t one = slot.values.size() / options_.batch;
    set_busy(+1);
    lock.unlock();
    std::exception_ptr error;
    try {
      make_image(image, slot.values.data() + image % options_.batch * one, pixels);
    } catch (...) {
      error = std::current_exception();
    }
    const ProcessUsage cost = thread_usage();
    lock.lock();
    set_busy(-1);
    costs_[thread] = cost;
    if (error) error_ = error;
    if (++slot.filled == options_.batch || error) ready_.notify_one();
  }
}

void ImageFeed::make_image(std::uint64_t image, float* into, std::vector<std::byte>& pixels) const {
  const std::uint64_t side = options_.side;
  const std::uint64_t key = mix(image + kGolden);
  if (options_.input == Input::synthetic) {
    std::fill_n(into, kChannels * side * side, static_cast<float>(key % 256));
    return;
  }
  const std::vector<std::byte>& file = files_[key % files_.size()];
  const ImageShape shape = image_shape(file);
  pixels.resize(shape.bytes());
  decode_image(file, shape, pixels);
  const std::uint64_t room = shape.height - side + 1;
  const std::uint64_t top = (key >> 8) % room;
  const std::uint64_t left = (key >> 24) % room;
  const bool mirrored = (key >> 40) % 2 == 1;
  for (std::uint64_t channel = 0; channel < kChannels; ++channel) {
    for (std::uint64_t y = 0; y < side; ++y) {
      const std::byte* row =
          pixels.data() + (channel * shape.height + top + y) * shape.width + left;
      for (std::uint64_t x = 0; x < side; ++x) {
        const std::byte pixel = row[mirrored ? side - 1 - x : x];
        *into++ = (static_cast<float>(std::to_integer<int>(pixel)) - 118.0F) * (1 / 58.0F);
      }
    }
  }
}

void ImageFeed::next() {
  if (options_.input == Input::none) {
    ++used_;
    return;
  }
  Lock lock(mutex_);
  Slot& slot = slots_[used_ % slots_.size()];
  ready_.wait(lock, [&] { return slot.filled == options_.batch || error_; });
  if (error_) std::rethrow_exception(error_);
  slot.filled = 0;
  ++used_;
  room_.notify_all();
}

ProcessUsage ImageFeed::cost() const {
  const std::lock_guard lock(mutex_);
  ProcessUsage sum;
  for (const ProcessUsage& cost : costs_) {
    sum.user_seconds += cost.user_seconds;
    sum.system_seconds += cost.system_seconds;
    sum.voluntary_switches += cost.voluntary_switches;
    sum.involuntary_switches += cost.involuntary_switches;
  }
  return sum;
}

std::int64_t ImageFeed::active_ns() const {
  const std::lock_guard lock(mutex_);
  return active_ns_ + (busy_ > 0 ? now_ns() - busy_since_ns_ : 0);
}

std::uint64_t ImageFeed::images() const {
  const std::lock_guard lock(mutex_);
  return used_ * options_.batch;
}

}  // namespace forebay::emulation
