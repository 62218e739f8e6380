// Any bytes as a stored value: scanning, detecting and decoding end in a result or in an Error, and
// our scanner accepts what the generated parser accepts, with the same content, and nothing else.
#include <datum.pb.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "forebay/dataset.hpp"
#include "forebay/error.hpp"
#include "format/codec/datum.hpp"

namespace forebay {
namespace {

// Keeps one input from asking for hundreds of megabytes; larger images take the same paths.
constexpr std::uint64_t kMaxFieldBytes = 1 << 22;

void require(bool condition) {
  if (!condition) std::abort();
}

bool same_bytes(const void* one, const void* other, std::size_t size) {
  return size == 0 || std::memcmp(one, other, size) == 0;
}

void compare_content(std::span<const std::byte> value, const DatumView& view, const Datum& datum) {
  require(view.channels.value_or(0) == datum.channels() &&
          view.height.value_or(0) == datum.height() && view.width.value_or(0) == datum.width() &&
          view.label.value_or(0) == datum.label() && view.label.has_value() == datum.has_label());
  require(view.encoded == datum.encoded() && view.data.size() == datum.data().size());
  require(same_bytes(view.data.data(), datum.data().data(), view.data.size()));
  require(view.floats == static_cast<std::uint64_t>(datum.float_data_size()));
  std::vector<std::byte> floats(view.floats * 4);
  copy_floats(value, floats);
  require(same_bytes(floats.data(), datum.float_data().data(), floats.size()));
}

void compare_with_generated_parser(std::span<const std::byte> value) {
  Datum datum;
  const bool accepted = datum.ParseFromArray(value.data(), static_cast<int>(value.size()));
  std::optional<DatumView> view;
  try {
    view = scan_datum(value);
  } catch (const Error&) {
  }
  require(view.has_value() == accepted);
  if (view) compare_content(value, *view, datum);
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
  compare_with_generated_parser(value);
  for (const char* codec : {"auto", "datum", "image", "image:rgba", "image:palette=index"}) {
    expect_result_or_error([&] { decode(codec, value); });
  }
  return 0;
}
