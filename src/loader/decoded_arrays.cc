#include "loader/decoded_arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/limits.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kLarge = std::size_t{16} << 20;  // asked for beforehand

/// Bytes of one field of `samples`, to the next multiple of the alignment. Throws usage.
std::size_t array_bytes(const Field& field, std::size_t samples) {
  std::size_t bytes = 0;
  if (!__builtin_mul_overflow(field.bytes(), samples, &bytes) && bytes < PTRDIFF_MAX) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  throw Error(
      ErrorKind::usage,
      fmt::format("{} decoded samples of field '{}' exceed all memory", samples, field.name),
      "lower --batch, or correct --schema");
}

}  // namespace

std::shared_ptr<std::byte> ArrayPool::take(std::size_t bytes) {
  Piece piece = get(bytes);
  std::byte* memory = piece.get();
  // std::function, and so the deleter, has to be copyable; the piece is not.
  auto owned = std::make_shared<Piece>(std::move(piece));
  return {memory,
          [pool = shared_from_this(), owned](std::byte*) { pool->give_back(std::move(*owned)); }};
}

ArrayPool::Piece ArrayPool::get(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  largest_ = std::max({largest_, bytes, kAlignment});
  const auto found =
      std::ranges::find_if(free_, [&](auto& piece) { return piece.get_deleter().bytes >= bytes; });
  if (found != free_.end()) {
    Piece piece = std::move(*found);
    free_.erase(found);
    return piece;
  }
  if (largest_ >= kLarge) require_memory(largest_, "a decoded batch", "--batch or --decode-ahead");
  Piece piece = take_memory(largest_);
  if (piece == nullptr) {
    throw no_memory(largest_, "a decoded batch", "--batch or --decode-ahead");
  }
  return piece;
}

void ArrayPool::give_back(Piece piece) noexcept {
  const std::lock_guard lock(mutex_);
  if (piece.get_deleter().bytes < largest_ || free_.size() >= most_free_) return;
  try {
    free_.push_back(std::move(piece));
  } catch (const std::bad_alloc&) {
    // One piece less to use again.
  }
}

std::size_t DecodedArrays::bytes_of(const Schema& schema, std::size_t samples) {
  std::size_t bytes = 0;
  for (const Field& field : schema.fields) {
    if (__builtin_add_overflow(bytes, array_bytes(field, samples), &bytes)) return SIZE_MAX;
  }
  return bytes;
}

DecodedArrays::DecodedArrays(std::shared_ptr<const Schema> schema, std::size_t samples,
                             ArrayPool& pool)
    : schema_(std::move(schema)), samples_(samples) {
  std::size_t offset = 0;
  for (const Field& field : schema_->fields) {
    offsets_.push_back(offset);
    field_bytes_.push_back(field.bytes());
    offset += array_bytes(field, samples);
  }
  memory_ = pool.take(offset);
}

std::span<std::byte> DecodedArrays::of_sample(std::size_t field, std::size_t sample) const {
  const std::size_t bytes = field_bytes_[field];
  return {memory_.get() + offsets_[field] + sample * bytes, bytes};
}

void DecodedArrays::remove(std::span<const std::size_t> samples) {
  for (std::size_t f = 0; f < offsets_.size(); ++f) {
    const std::size_t bytes = field_bytes_[f];
    std::byte* array = memory_.get() + offsets_[f];
    for (std::size_t i = 0; i < samples.size(); ++i) {
      // What lies up to the next gap moves by as many places as gaps came before it.
      const std::size_t from = samples[i] + 1;
      const std::size_t end = i + 1 < samples.size() ? samples[i + 1] : samples_;
      if (end > from) {
        std::memmove(array + (from - i - 1) * bytes, array + from * bytes, (end - from) * bytes);
      }
    }
  }
  samples_ -= samples.size();
}

std::span<const std::byte> DecodedArrays::field(std::size_t index) const {
  if (index < offsets_.size()) {
    return {memory_.get() + offsets_[index], samples_ * field_bytes_[index]};
  }
  throw Error(ErrorKind::usage,
              fmt::format("there is no field {}: samples are {}", index, to_string(*schema_)),
              "fields are numbered from 0, see Loader::schema()");
}

std::span<const std::byte> DecodedArrays::field(std::string_view name) const {
  const Field* found = schema_->find(name);
  if (found != nullptr) return field(static_cast<std::size_t>(found - schema_->fields.data()));
  throw Error(ErrorKind::usage,
              fmt::format("there is no field '{}': samples are {}", name, to_string(*schema_)),
              "see Loader::schema() for those that there are");
}

}  // namespace forebay
