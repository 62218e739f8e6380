#include <algorithm>
#include <optional>
#include <utility>

#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/codec/codecs.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kMostAsked = 1000;

/// Throws what is wrong with the request rather than with the value.
std::optional<Schema> schema_told_by(const TellingSample& one) {
  try {
    Schema schema = make_codec(one.codec, bytes_of(one.value))->schema();
    if (!schema.fields.empty()) return schema;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt && error.kind() != ErrorKind::unsupported) throw;
  }
  return {};
}

/// The sample; nothing where it cannot be read and that is passed over.
std::optional<TellingSample> read_one(const CodecOptions& options, std::uint64_t id,
                                      const ReadSample& read, bool passes,
                                      std::optional<Error>& problem) {
  TellingSample one{.codec = options, .sample = id};
  try {
    read(id, [&](const Record& record) {
      one.key = chars_of(record.key);
      one.value = chars_of(record.value);
    });
    return one;
  } catch (const Error& error) {
    if (!passes || error.kind() == ErrorKind::usage || error.kind() == ErrorKind::changed) throw;
    if (!problem) problem = error.within({.sample = id});
    return {};
  }
}

struct Vote {
  TellingSample sample;
  Schema schema;
};

TellingSample winner(std::vector<Vote>& votes) {
  const auto agreeing = [&](const Vote& vote) {
    return std::ranges::count(votes, vote.schema, &Vote::schema);
  };
  return std::move(std::ranges::max_element(votes, {}, agreeing)->sample);
}

}  // namespace

CodecPtr TellingSample::make(const std::string& file) const {
  try {
    return make_codec(codec, bytes_of(value));
  } catch (const Error& error) {
    throw error.within({.file = file, .sample = sample, .key = printable_key(key)});
  }
}

TellingSample find_telling_sample(const CodecOptions& options, std::uint64_t entries,
                                  const ReadSample& read, const Doubts& doubts) {
  if (options.codec == "bytes" || options.codec == "raw") return {.codec = options};
  const bool any = parse_codec_name(options.codec).name == "auto";
  std::optional<TellingSample> first;  // that is anything
  std::optional<Error> problem;
  std::vector<Vote> votes;
  std::size_t looks = 0;
  for (std::uint64_t id = 0; id < std::min(entries, kMostAsked); ++id) {
    auto one = read_one(options, id, read, doubts.unreadable, problem);
    if (one && any && one->value.empty()) continue;  // says nothing
    if (one && !doubts.undecodable) return std::move(*one);
    if (one && !first) first = one;
    if (auto schema = one ? schema_told_by(*one) : std::nullopt) {
      votes.push_back({std::move(*one), std::move(*schema)});
    }
    if (votes.size() == doubts.votes || (doubts.votes > 1 && ++looks == doubts.votes)) break;
  }
  if (!votes.empty()) return winner(votes);
  if (first) return std::move(*first);
  if (problem) throw Error(*problem);
  CodecOptions bytes = options;
  bytes.codec = "bytes";
  if (entries == 0) bytes.schema.clear();
  return {.codec = std::move(bytes)};
}

}  // namespace forebay
