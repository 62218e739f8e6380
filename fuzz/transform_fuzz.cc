// Any text as a transform, and any bytes as the image that it is done to: a result or an Error, in
// bounded memory; and what reads is written as a text that reads to the same.
//
//   text "\n" the rest: an image file, or an array of 3 x 9 x 7 bytes
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/transform.hpp"

namespace {

using namespace forebay;

// Keeps one input from asking for hundreds of megabytes; larger images take the same paths.
constexpr std::uint64_t kMostBytes = 1 << 22;

void require(bool condition) {
  if (!condition) std::abort();
}

template <typename Call>
void attempt(const Call& call) {
  try {
    call();
  } catch (const Error&) {
    // The expected answer to most inputs.
  }
}

/// Steps in between may be large also where the output is not.
bool asks_for_much(const std::string& text) {
  std::size_t digits = 0;
  return std::any_of(text.begin(), text.end(), [&](char c) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    return digits > 3;
  });
}

void apply(const Transform& transform, std::span<const std::byte> bytes) {
  attempt([&] {
    const Field output = transform.output_of_file(bytes);
    if (output.bytes() > kMostBytes) return;
    std::vector<std::byte> out(output.bytes());
    transform.apply_to_file(bytes, bytes.size(), out);
  });
  attempt([&] {
    const Field input{"image", ElementType::u8, {3, 9, 7}};
    const Field output = transform.output(input);
    std::vector<std::byte> image(input.bytes()), out(output.bytes());
    std::copy_n(bytes.begin(), std::min(bytes.size(), image.size()), image.begin());
    transform.apply(input, image, bytes.size(), out);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* end = std::find(data, data + size, '\n');
  const std::string text(data, end);
  const auto bytes = std::as_bytes(std::span(end, data + size)).subspan(end == data + size ? 0 : 1);
  attempt([&] {
    const Transform transform = Transform::parse(text);
    require(Transform::parse(transform.to_text()).to_text() == transform.to_text());
    if (!asks_for_much(transform.to_text())) apply(transform, bytes);
  });
  return 0;
}
