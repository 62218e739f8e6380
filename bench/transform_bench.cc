// Images a second of one core: decoding alone, and with what training does behind it.
//
// A JPEG file of 500x375 pixels with shapes and noise, 4:2:0, quality 90: about as large as those
// of ImageNet. Seeds differ from image to image, as they do in a run.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "forebay/transform.hpp"
#include "format/codec/image.hpp"

namespace forebay {
namespace {

std::vector<std::byte> make_file(const ImageShape& shape) {
  std::vector<std::byte> pixels(shape.bytes());
  std::uint32_t noise = 1;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const std::size_t c = i / (shape.height * shape.width);
    const auto y = static_cast<double>(i / shape.width % shape.height);
    const auto x = static_cast<double>(i % shape.width);
    noise = noise * 1664525 + 1013904223;
    const double shapes =
        std::sin(x / 17 + static_cast<double>(c)) + std::sin(y / 11) + std::sin((x + y) / 29);
    pixels[i] = static_cast<std::byte>(127 + 35 * shapes + static_cast<double>(noise >> 27));
  }
  return encode_jpeg(shape, pixels, 90);
}

const std::vector<std::byte>& photo() {
  static const auto file = make_file({3, 375, 500});
  return file;
}

const std::vector<std::byte>& large_photo() {
  static const auto file = make_file({3, 1500, 2000});
  return file;
}

void decode_only(benchmark::State& state) {
  const ImageShape shape = image_shape(photo());
  std::vector<std::byte> pixels(shape.bytes());
  for (auto _ : state) decode_image(photo(), shape, pixels);
  state.SetItemsProcessed(state.iterations());
  state.counters["file_bytes"] = static_cast<double>(photo().size());
}
BENCHMARK(decode_only);

void run(benchmark::State& state, const std::vector<std::byte>& file, const std::string& text) {
  const Transform transform = Transform::parse(text);
  std::vector<std::byte> out(transform.output_of_file(file).bytes());
  std::uint64_t seed = 0;
  for (auto _ : state) transform.apply_to_file(file, ++seed, out);
  state.SetItemsProcessed(state.iterations());
}

constexpr const char* kValues = ",to-float,normalize=0.485:0.456:0.406/0.229:0.224:0.225";

void train(benchmark::State& state) {
  run(state, photo(), std::string("rgb,random-resized-crop=224,flip") + kValues);
}
BENCHMARK(train);

void train_bytes(benchmark::State& state) {
  run(state, photo(), "rgb,random-resized-crop=224,flip");
}
BENCHMARK(train_bytes);

void train_half_hwc(benchmark::State& state) {
  run(state, photo(),
      std::string("rgb,random-resized-crop=224,flip") + kValues + ",cast=f16,layout=hwc");
}
BENCHMARK(train_half_hwc);

void validate(benchmark::State& state) {
  run(state, photo(), std::string("rgb,resize=256,crop=224") + kValues);
}
BENCHMARK(validate);

void validate_large(benchmark::State& state) {
  run(state, large_photo(), std::string("rgb,resize=256,crop=224") + kValues);
}
BENCHMARK(validate_large);

void validate_large_full_decode(benchmark::State& state) {
  run(state, large_photo(), std::string("full-decode,rgb,resize=256,crop=224") + kValues);
}
BENCHMARK(validate_large_full_decode);

/// What is behind the decoding, alone: an image of bytes in planes.
void arrays(benchmark::State& state) {
  const Transform transform =
      Transform::parse(std::string("random-resized-crop=224,flip") + kValues);
  const Field field{"image", ElementType::u8, {3, 375, 500}};
  std::vector<std::byte> image(field.bytes()), out(transform.output(field).bytes());
  std::uint64_t seed = 0;
  for (auto _ : state) transform.apply(field, image, ++seed, out);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(arrays);

}  // namespace
}  // namespace forebay

BENCHMARK_MAIN();
