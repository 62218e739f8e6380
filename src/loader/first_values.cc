#include "loader/first_values.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include "format/byte_stream.hpp"

namespace forebay {

FirstValues look_at_values(DataAccess& data, std::uint64_t entries, bool may_skip,
                           const CodecOptions& options) {
  FirstValues first;
  const auto read = [&](std::uint64_t id, const RecordSink& sink) {
    data.read_sample(id, [&](const Record& record) {
      if (id == 0) {
        first.digest =
            fmt::format("{:016x}", XXH3_64bits(record.value.data(), record.value.size()));
        first.value_bytes = record.value.size();
      }
      sink(record);
    });
  };
  first.telling = find_telling_sample(options, entries, read, {.undecodable = may_skip});
  if (first.digest.empty()) {
    read(0, [&](const Record& record) { first.telling.key = chars_of(record.key); });
  }
  return first;
}

}  // namespace forebay
