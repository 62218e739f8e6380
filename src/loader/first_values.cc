#include "loader/first_values.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <functional>

#include "format/codec/codecs.hpp"

namespace forebay {
namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Whether a codec is told by the first value, which may be large, or by the options alone.
bool needs_first_value(const CodecOptions& options) {
  return options.codec != "bytes" && options.codec != "raw";
}

FirstRecord look_at_first(DataAccess& data, bool with_value) {
  FirstRecord first;
  const RecordSink sink = [&](const Record& record) {
    first.key = text_of(record.key);
    first.digest = fmt::format("{:016x}", XXH3_64bits(record.value.data(), record.value.size()));
    first.value_bytes = record.value.size();
    if (with_value) first.value = text_of(record.value);
  };
  data.read_sample(0, sink);
  return first;
}

/// The value of the first sample that `says` what values are, in place of the first of all.
void look_for(DataAccess& data, std::uint64_t entries, FirstRecord& first,
              const std::function<bool(std::span<const std::byte>)>& says) {
  bool found = says(std::as_bytes(std::span(first.value)));
  for (std::uint64_t sample = 1; sample < std::min(entries, kMostAsked) && !found; ++sample) {
    data.read_sample(sample, [&](const Record& record) {
      found = says(record.value);
      if (!found) return;
      first.key = text_of(record.key);
      first.value = text_of(record.value);
      first.sample = sample;
    });
  }
}

/// The codec for values like `value`; where that throws what is about the value, or only finds that
/// it is no value of a known kind, nothing.
std::shared_ptr<const Codec> try_codec(const CodecOptions& options,
                                       std::span<const std::byte> value) {
  try {
    auto codec = make_codec(options, value);
    const bool told = !codec->schema().fields.empty() || options.codec == "bytes";
    return told ? codec : nullptr;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::corrupt || error.kind() == ErrorKind::unsupported) return {};
    throw;
  }
}

}  // namespace

FirstRecord look_at_values(DataAccess& data, std::uint64_t entries, bool may_skip,
                           CodecOptions& options) {
  const bool by_value = needs_first_value(options);
  FirstRecord first = look_at_first(data, by_value);
  if (by_value && may_skip) {
    look_for(data, entries, first, [&](std::span<const std::byte> value) {
      return try_codec(options, value) != nullptr;
    });
  }
  if (options.codec == "auto" && first.value.empty()) {
    look_for(data, entries, first, [](std::span<const std::byte> value) { return !value.empty(); });
    if (first.value.empty()) options.codec = "bytes";
  }
  return first;
}

}  // namespace forebay
