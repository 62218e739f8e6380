#include <algorithm>
#include <optional>
#include <utility>

#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/codec/codecs.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kMostAsked = 1000;
// Each is a read of its own, at open: as many as make a row of bad samples unlikely.
constexpr std::uint64_t kFewAsked = 16;

/// Nothing where the value does not decode. Throws what is wrong with the request rather than with
/// the value.
CodecPtr codec_told_by(const TellingSample& one) {
  try {
    return make_codec(one.codec, bytes_of(one.value));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt && error.kind() != ErrorKind::unsupported) throw;
  }
  return nullptr;
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

/// Those of the samples looked at that tell the most.
class Telling {
 public:
  explicit Telling(std::size_t most) : most_(most) {}

  void add(TellingSample one, const Codec& codec) {
    const std::size_t untold = untold_of(codec);
    if (!votes_.empty() && untold > untold_) return;
    if (untold < untold_) votes_.clear();
    untold_ = untold;
    if (votes_.size() < most_) votes_.push_back({std::move(one), codec.schema()});
  }

  bool any() const { return !votes_.empty(); }
  bool fields() const { return any() && votes_.front().schema != Schema(); }
  /// Whether no further sample says more.
  bool all() const { return votes_.size() == most_ && untold_ == 0; }

  /// The one that most others agree with, the first of such.
  TellingSample winner() {
    const auto agreeing = [&](const Vote& vote) {
      return std::ranges::count(votes_, vote.schema, &Vote::schema);
    };
    return std::move(std::ranges::max_element(votes_, {}, agreeing)->sample);
  }

 private:
  struct Vote {
    TellingSample sample;
    Schema schema;
  };
  std::size_t most_;
  std::size_t untold_ = 0;  ///< by each of them
  std::vector<Vote> votes_;
};

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
  Telling telling(doubts.votes);
  std::uint64_t looks = 0;
  for (std::uint64_t id = 0; id < std::min(entries, kMostAsked) && !telling.all(); ++id) {
    const bool enough = doubts.undecodable ? telling.fields() : telling.any();
    if (looks >= kFewAsked && (enough || problem)) break;
    auto one = read_one(options, id, read, doubts.unreadable, problem);
    if (one && any && one->value.empty()) continue;  // says nothing
    ++looks;
    if (one && !first) first = one;
    const CodecPtr codec = one ? codec_told_by(*one) : nullptr;
    if (codec) telling.add(std::move(*one), *codec);
  }
  if (telling.any()) return telling.winner();
  if (first) return std::move(*first);
  if (problem) throw Error(*problem);
  CodecOptions bytes = options;
  bytes.codec = "bytes";
  if (entries == 0) bytes.schema.clear();
  return {.codec = std::move(bytes)};
}

}  // namespace forebay
