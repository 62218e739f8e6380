#include "exchange/held_share.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kStep = std::uint64_t{4} << 20;

}  // namespace

void HeldShare::back(std::uint64_t end) {
  if (!reserve_ || end <= backed_) return;
  const std::uint64_t next =
      std::min<std::uint64_t>((end + kStep - 1) / kStep * kStep, memory_.size());
  reserve_(backed_, next);
  backed_ = next;
}

std::span<std::byte> HeldShare::take(std::span<const std::uint64_t> bytes) {
  std::uint64_t end = used_;
  for (const std::uint64_t size : bytes) {
    if (sample_bytes_ != 0 && size != sample_bytes_) {
      throw Error(ErrorKind::usage,
                  fmt::format("a sample of {} bytes among samples of {}", size, sample_bytes_),
                  "set the sample size of the exchange to 0, which allows any",
                  {.sample = samples_});
    }
    if (size > memory_.size() - end) {
      throw Error(ErrorKind::usage,
                  fmt::format("the share of this rank is full: {} more bytes are needed, {} of {} "
                              "are free",
                              size, memory_.size() - end, memory_.size()),
                  "lower --memory-ratio, or give the exchange more memory");
    }
    end += size;
  }
  back(end);
  const auto room = memory_.subspan(used_, end - used_);
  samples_ += bytes.size();
  if (sample_bytes_ == 0) {
    for (const std::uint64_t size : bytes) ends_.push_back(used_ += size);
  }
  used_ = end;
  return room;
}

void HeldShare::append(std::span<const std::byte> sample) {
  const auto room = take(sample.size());
  if (!room.empty()) std::memcpy(room.data(), sample.data(), room.size());
}

void HeldShare::clear() {
  used_ = 0;
  samples_ = 0;
  ends_.clear();
}

}  // namespace forebay
