// Any bytes as a stored value: scanning, detecting and decoding end in a result or in an Error, and
// what our scanner accepts, the generated parser accepts with the same content.
#include <datum.pb.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "forebay/dataset.hpp"
#include "forebay/error.hpp"
#include "format/codec/datum_view.hpp"

namespace forebay {
namespace {

// Keeps one input from asking for hundreds of megabytes; larger images take the same paths.
constexpr std::uint64_t kMaxFieldBytes = 1 << 22;

void require(bool condition) {
  if (!condition) std::abort();
}

void compare_with_generated_parser(std::span<const std::byte> value) {
  const DatumView view = scan_datum(value);
  Datum datum;
  require(datum.ParseFromArray(value.data(), static_cast<int>(value.size())));
  require(view.channels.value_or(0) == datum.channels() &&
          view.height.value_or(0) == datum.height() && view.width.value_or(0) == datum.width() &&
          view.label.value_or(0) == datum.label());
  require(view.encoded == datum.encoded() && view.data.size() == datum.data().size());
  require(view.data.empty() ||
          std::memcmp(view.data.data(), datum.data().data(), view.data.size()) == 0);
  require(view.floats == static_cast<std::uint64_t>(datum.float_data_size()));
}

void decode(const char* codec_name, std::span<const std::byte> value) {
  const auto codec = make_codec({.codec = codec_name, .schema = ""}, value);
  std::vector<std::vector<std::byte>> buffers;
  std::vector<std::span<std::byte>> spans;
  for (const Field& field : codec->schema().fields) {
    if (field.bytes() > kMaxFieldBytes) return;
    buffers.emplace_back(field.bytes());
  }
  for (auto& buffer : buffers) spans.emplace_back(buffer);
  codec->decode(value, spans);
}

template <typename Call>
void expect_result_or_error(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    require(std::strchr(error.what(), '\n') == nullptr);
  }
}

}  // namespace
}  // namespace forebay

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace forebay;
  const std::span value(reinterpret_cast<const std::byte*>(data), size);
  expect_result_or_error([&] { compare_with_generated_parser(value); });
  for (const char* codec : {"auto", "datum", "image"}) {
    expect_result_or_error([&] { decode(codec, value); });
  }
  return 0;
}
