#include "exchange/share.hpp"

#include <fmt/format.h>

#include <cstring>

#include "forebay/error.hpp"

namespace forebay {

std::span<std::byte> Share::take(std::span<const std::uint64_t> bytes) {
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
  const auto room = memory_.subspan(used_, end - used_);
  samples_ += bytes.size();
  if (sample_bytes_ == 0) {
    for (const std::uint64_t size : bytes) ends_.push_back(used_ += size);
  }
  used_ = end;
  return room;
}

void Share::append(std::span<const std::byte> sample) {
  const auto room = take(sample.size());
  if (!room.empty()) std::memcpy(room.data(), sample.data(), room.size());
}

void Share::clear() {
  used_ = 0;
  samples_ = 0;
  ends_.clear();
}

}  // namespace forebay
