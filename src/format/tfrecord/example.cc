#include "format/tfrecord/tfrecord.hpp"

#include <cstring>

#include "format/byte_stream.hpp"
#include "format/codec/wire.hpp"

namespace forebay::tfrecord {
namespace {

using wire::WireField;
using wire::WireReader;

WireReader reader_of(std::span<const std::byte> bytes) {
  return {bytes, "a tf.train.Example", "write the record again"};
}

void append(std::vector<std::byte>& memory, std::span<const std::byte> bytes) {
  memory.insert(memory.end(), bytes.begin(), bytes.end());
}

/// As protobuf merges them: lists of one kind are joined, the last kind counts.
void read_lists(std::span<const std::byte> message, Feature& feature) {
  WireReader lists = reader_of(message);
  while (!lists.at_end()) {
    const WireField field = lists.next();
    if (field.type != wire::kBytes || field.number < 1 || field.number > 3) continue;
    const auto kind = static_cast<FeatureKind>(field.number);
    if (feature.kind != kind) feature.lists.clear();
    feature.kind = kind;
    feature.lists.push_back(field.payload);
  }
}

void read_entry(std::span<const std::byte> entry, Feature& feature) {
  feature.name = {};
  feature.kind = FeatureKind::none;
  feature.lists.clear();
  WireReader fields = reader_of(entry);
  while (!fields.at_end()) {
    const WireField field = fields.next();
    if (field.is(1, wire::kBytes)) feature.name = chars_of(field.payload);
    if (field.is(2, wire::kBytes)) read_lists(field.payload, feature);
  }
}

std::uint64_t append_integers(std::span<const std::byte> packed, std::vector<std::byte>& memory) {
  WireReader numbers = reader_of(packed);
  std::uint64_t count = 0;
  for (; !numbers.at_end(); ++count) {
    const std::uint64_t number = numbers.varint();
    append(memory, std::as_bytes(std::span(&number, 1)));
  }
  return count;
}

}  // namespace

void read_example(std::span<const std::byte> example,
                  const std::function<void(const Feature&)>& take) {
  WireReader fields = reader_of(example);
  Feature feature;
  while (!fields.at_end()) {
    const WireField field = fields.next();
    // SequenceExample has lists of features beside the first one.
    if (!field.is(1, wire::kBytes)) fields.throw_corrupt("another field than features");
    WireReader features = reader_of(field.payload);
    while (!features.at_end()) {
      const WireField entry = features.next();
      if (!entry.is(1, wire::kBytes)) features.throw_corrupt("another field than a feature");
      read_entry(entry.payload, feature);
      take(feature);
    }
  }
}

FeatureValues read_values(const Feature& feature, std::vector<std::byte>& memory,
                          std::vector<std::int64_t>* lengths) {
  constexpr std::size_t kFloat = 4;
  FeatureValues values;
  const std::size_t begin = memory.size();
  const bool text = feature.kind == FeatureKind::bytes;
  std::uint64_t pieces = 0;
  const auto take = [&](const WireReader& reader, const WireField& field) {
    if (feature.kind == FeatureKind::integers) {
      if (field.type == wire::kVarint) {
        append(memory, std::as_bytes(std::span(&field.varint, 1)));
        ++values.count;
      } else if (field.type == wire::kBytes) {
        values.count += append_integers(field.payload, memory);
      }
      return;
    }
    if (field.type != wire::kBytes && (text || field.type != wire::kFixed32)) return;
    if (!text && field.payload.size() % kFloat != 0) reader.throw_corrupt("a half of a float");
    values.count += text ? 1 : field.payload.size() / kFloat;
    if (text && lengths != nullptr) {
      lengths->push_back(static_cast<std::int64_t>(field.payload.size()));
    }
    // The only piece can be used where it lies.
    if (pieces++ == 0) {
      values.in_place = field.payload;
      return;
    }
    if (pieces == 2) append(memory, values.in_place);
    values.in_place = {};
    append(memory, field.payload);
  };
  for (const auto& list : feature.lists) {
    WireReader fields = reader_of(list);
    while (!fields.at_end()) {
      if (const WireField field = fields.next(); field.number == 1) take(fields, field);
    }
  }
  if (memory.size() > begin) values.in_place = {};
  return values;
}

}  // namespace forebay::tfrecord
