#include "loader/decode_pool.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "forebay/packed_parts.hpp"
#include "format/byte_stream.hpp"

namespace forebay {
namespace {

// Long enough that handing it out costs nothing beside copying so much.
constexpr std::size_t kChunkBytes = 64 << 10;

// Values whose ends are fetched while those before are decoded: some at a time, since to find out
// where pages are takes longest, and can be done of several at once. Of as many behind them the
// first bytes, which may tell where their parts are.
constexpr std::size_t kFetched = 4;

std::string key_text(const Sample& sample) { return printable_key(chars_of(sample.key)); }

}  // namespace

void decode_sample(const Codec& codec, const Sample& sample,
                   std::span<const std::span<std::byte>> fields) {
  try {
    codec.decode_seeded(sample.value, fields, sample.seed());
  } catch (const Error& error) {
    throw error.within({.sample = sample.id, .key = key_text(sample)});
  }
}

DecodePool::DecodePool(std::shared_ptr<const Codec> codec, Undecodable undecodable,
                       unsigned threads, std::size_t kept, const Placement& placement,
                       std::function<void()> check)
    : codec_(std::move(codec)),
      schema_(codec_, &codec_->schema()),
      undecodable_(undecodable),
      check_(std::move(check)),
      memory_(std::make_shared<ArrayPool>(kept)),
      workers_("fb-decode", threads, placement) {}

void DecodePool::decode(Delivery& delivery) {
  auto arrays = std::make_shared<DecodedArrays>(schema_, delivery.samples.size(), *memory_);
  auto chunks = chunks_of(delivery.samples.size());
  try {
    workers_.run(chunks.size(), [&](std::size_t i) { decode_chunk(delivery, *arrays, chunks[i]); });
  } catch (const std::exception&) {
    check_();  // what has changed looks damaged, or as if it took all memory
    throw;
  }
  check_();
  if (stopping_) throw Error(ErrorKind::cancelled, "the loader was closed while it decoded");
  close_gaps(chunks, *arrays, delivery);
  delivery.arrays = std::move(arrays);
}

std::vector<DecodePool::Chunk> DecodePool::chunks_of(std::size_t samples) const {
  const std::size_t sample_bytes = std::max<std::size_t>(DecodedArrays::bytes_of(*schema_, 1), 1);
  const std::size_t length = std::max<std::size_t>(kChunkBytes / sample_bytes, 1);
  std::vector<Chunk> chunks;
  for (std::size_t first = 0; first < samples; first += length) {
    chunks.push_back({.first = first, .end = std::min(first + length, samples), .bad = {}});
  }
  return chunks;
}

void DecodePool::decode_chunk(const Delivery& delivery, const DecodedArrays& arrays, Chunk& chunk) {
  const std::int64_t begin = now_ns();
  std::vector<std::span<std::byte>> fields(schema_->fields.size());
  const auto fetch = [&](std::size_t first) {
    for (std::size_t i = first; i < std::min(first + kFetched, chunk.end); ++i) {
      if (i + kFetched < chunk.end) {
        __builtin_prefetch(delivery.samples[i + kFetched].value.data());
      }
      fetch_ends(delivery.samples[i].value);
    }
  };
  fetch(chunk.first);
  for (std::size_t i = chunk.first; i < chunk.end && !stopping_; ++i) {
    for (std::size_t f = 0; f < fields.size(); ++f) fields[f] = arrays.of_sample(f, i);
    const Sample& sample = delivery.samples[i];
    if ((i - chunk.first) % kFetched == 0) fetch(i + kFetched);
    try {
      decode_sample(*codec_, sample, fields);
    } catch (const Error& error) {
      if (!leave_out(error)) throw;
      chunk.bad.push_back(
          {.index = i,
           .what = {.id = sample.id, .key = key_text(sample), .message = error.happened()}});
    }
  }
  busy_ns_ += now_ns() - begin;
}

bool DecodePool::leave_out(const Error& error) const {
  const bool of_value =
      error.kind() == ErrorKind::corrupt || error.kind() == ErrorKind::unsupported;
  return of_value && undecodable_ == Undecodable::skip;
}

void DecodePool::close_gaps(std::span<Chunk> chunks, DecodedArrays& arrays, Delivery& delivery) {
  std::vector<std::size_t> gaps;
  for (Chunk& chunk : chunks) {
    for (Bad& bad : chunk.bad) {
      gaps.push_back(bad.index);
      delivery.skipped.push_back(std::move(bad.what));
    }
  }
  if (gaps.empty()) return;
  arrays.remove(gaps);
  std::size_t index = 0, gap = 0;
  std::erase_if(delivery.samples, [&](const Sample&) {
    const bool bad = gap < gaps.size() && gaps[gap] == index++;
    if (bad) ++gap;
    return bad;
  });
}

}  // namespace forebay
