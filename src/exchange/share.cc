#include "exchange/share.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <tuple>

#include "comm/messages.hpp"
#include "forebay/error.hpp"

namespace forebay {

void FetchPlan::add_near(std::span<const std::byte> from, std::span<std::byte> to) {
  if (from.empty()) return;
  near_.push_back({from, to.data()});
  near_bytes_ += from.size();
}

void FetchPlan::add_far(const Wanted& wanted, std::uint64_t offset, std::span<std::byte> to) {
  if (far_.empty()) first_far_ = wanted;
  far_bytes_ += to.size();
  while (!to.empty()) {
    const std::size_t bytes = std::min<std::uint64_t>(longest_piece_, to.size());
    far_.push_back({wanted.owner, offset, to.first(bytes)});
    offset += bytes;
    to = to.subspan(bytes);
  }
}

std::span<const RemotePiece> FetchPlan::far() {
  std::ranges::sort(far_, {},
                    [](const RemotePiece& piece) { return std::tuple(piece.owner, piece.offset); });
  return far_;
}

void FetchPlan::copy_near() const {
  for (const Copy& copy : near_) std::memcpy(copy.to, copy.from.data(), copy.from.size());
}

namespace {

constexpr std::uint64_t kBlock = 64;
constexpr std::uint64_t kNarrow = 0;
constexpr std::uint64_t kWide = 1;

std::uint64_t blocks_of(std::uint64_t bounds) { return (bounds + kBlock - 1) / kBlock; }

std::uint64_t narrow_bytes(std::uint64_t bounds) {
  const std::uint64_t small = bounds * sizeof(std::uint32_t);
  return sizeof(kNarrow) + blocks_of(bounds) * sizeof(std::uint64_t) + (small + 7) / 8 * 8;
}

std::uint64_t wide_bytes(std::uint64_t bounds) { return sizeof(kWide) + bounds * 8; }

std::uint64_t bound_of(std::span<const std::uint64_t> ends, std::uint64_t number) {
  return number == 0 ? 0 : ends[number - 1];
}

bool fits_narrow(std::span<const std::uint64_t> ends) {
  for (std::uint64_t first = 0; first <= ends.size(); first += kBlock) {
    const std::uint64_t last = std::min<std::uint64_t>(first + kBlock - 1, ends.size());
    const std::uint64_t span = bound_of(ends, last) - bound_of(ends, first);
    if (span > std::numeric_limits<std::uint32_t>::max()) return false;
  }
  return true;
}

}  // namespace

std::uint64_t encoded_table_bytes(std::span<const std::uint64_t> ends) {
  const std::uint64_t bounds = ends.size() + 1;
  return fits_narrow(ends) ? narrow_bytes(bounds) : wide_bytes(bounds);
}

void encode_table(std::span<const std::uint64_t> ends, std::span<std::byte> to) {
  if (!fits_narrow(ends)) {
    put_value(to, kWide);
    for (std::uint64_t i = 0; i <= ends.size(); ++i) put_value(to, bound_of(ends, i));
    return;
  }
  put_value(to, kNarrow);
  for (std::uint64_t i = 0; i <= ends.size(); i += kBlock) put_value(to, bound_of(ends, i));
  for (std::uint64_t i = 0; i <= ends.size(); ++i) {
    const std::uint64_t above = bound_of(ends, i / kBlock * kBlock);
    put_value(to, static_cast<std::uint32_t>(bound_of(ends, i) - above));
  }
}

ShareTable ShareTable::fixed(std::uint64_t samples, std::uint64_t sample_bytes) {
  ShareTable table;
  table.samples_ = samples;
  table.sample_bytes_ = sample_bytes;
  return table;
}

ShareTable ShareTable::over(std::span<const std::byte> encoded, std::uint64_t samples) {
  const std::uint64_t bounds = samples + 1;
  std::uint64_t form = kNarrow;
  if (encoded.size() >= sizeof(form)) std::memcpy(&form, encoded.data(), sizeof(form));
  const std::uint64_t needed = form == kWide ? wide_bytes(bounds) : narrow_bytes(bounds);
  if (form > kWide || encoded.size() != needed) {
    throw Error(ErrorKind::communication, "a table of samples from another rank is damaged",
                "this is a fault of Forebay: please report it");
  }
  ShareTable table;
  table.samples_ = samples;
  table.form_ = form == kWide ? Form::wide : Form::narrow;
  const std::uint64_t large = form == kWide ? bounds : blocks_of(bounds);
  const std::byte* const begin = encoded.data() + sizeof(form);
  table.bounds_ = {reinterpret_cast<const std::uint64_t*>(begin), large};
  if (form == kNarrow) {
    table.from_above_ = {
        reinterpret_cast<const std::uint32_t*>(begin + large * sizeof(std::uint64_t)), bounds};
  }
  return table;
}

std::uint64_t ShareTable::bound(std::uint64_t number) const {
  if (form_ == Form::wide) return bounds_[number];
  return bounds_[number / kBlock] + from_above_[number];
}

ShareTable::Place ShareTable::at(std::uint64_t index) const {
  if (form_ == Form::fixed) return {index * sample_bytes_, sample_bytes_};
  const std::uint64_t begin = bound(index);
  return {begin, bound(index + 1) - begin};
}

namespace {

// Shares grow in steps: of a small one little, as shared memory may be small as well.
constexpr std::uint64_t kLeastStep = std::uint64_t{64} << 10;
constexpr std::uint64_t kMostStep = std::uint64_t{4} << 20;

}  // namespace

void HeldShare::back(std::uint64_t end) {
  if (!reserve_ || end <= backed_) return;
  const std::uint64_t step = std::clamp(std::bit_floor(end), kLeastStep, kMostStep);
  const std::uint64_t next =
      std::min<std::uint64_t>((end + step - 1) / step * step, memory_.size());
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

namespace {

// Every wait looks up this often, for failures and for shutdown.
constexpr std::chrono::milliseconds kSlice{20};

}  // namespace

void Generations::open() {
  const std::lock_guard lock(mutex_);
  ++opened_;
  changed_.notify_all();
}

void Generations::release(std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  released_ = std::max(released_, generation + 1);
  changed_.notify_all();
}

std::uint64_t Generations::opened() const {
  const std::lock_guard lock(mutex_);
  return opened_;
}

bool Generations::is_released(std::uint64_t generation) const {
  const std::lock_guard lock(mutex_);
  return generation < released_;
}

template <typename Ready>
void Generations::wait(const WaitPolicy& policy, const std::string& what, Ready ready) {
  Waiting waiting(policy, what);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kSlice, ready)) {
    lock.unlock();
    waiting.check();
    lock.lock();
  }
}

void Generations::wait_opened(std::uint64_t generation, const WaitPolicy& policy) {
  wait(policy, fmt::format("filling {} of the shares", generation),
       [&] { return generation < opened_; });
}

void Generations::wait_released(std::uint64_t generation, const WaitPolicy& policy) {
  wait(policy, fmt::format("the readers of filling {} of the shares", generation),
       [&] { return generation < released_; });
}

}  // namespace forebay
