#include "order/epoch_list.hpp"

#include <algorithm>
#include <array>

#include "core/mix.hpp"

namespace forebay {

Deal EpochList::deal(int ranks, std::uint64_t batch) const {
  return Deal::by_batch(size(), ranks, batch);
}

void EpochList::samples(std::uint64_t first, std::span<std::uint64_t> to) const {
  for (std::uint64_t& sample : to) sample = this->sample(first++);
}

void EpochList::draws(const DealtEpoch& dealt, int rank, std::uint64_t first,
                      std::span<Draw> to) const {
  const std::uint64_t own = dealt.own(rank);
  std::array<std::uint64_t, 256> memory;
  while (!to.empty()) {
    const std::uint64_t row = dealt.in_a_row(rank, first);
    const std::uint64_t position = dealt.position(rank, first);
    const std::size_t count = std::min<std::uint64_t>({row, to.size(), memory.size()});
    const auto samples = std::span(memory).first(count);
    this->samples(position, samples);
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = {.sample = samples[i], .position = position + i, .repeat = first + i >= own};
    }
    first += count;
    to = to.subspan(count);
  }
}

std::optional<Buffer> EpochList::first_buffer(const DealtEpoch& dealt, int rank,
                                              std::uint64_t iteration) const {
  const std::uint64_t draw = iteration * dealt.deal().share(rank);
  if (draw >= dealt.draws(rank)) return std::nullopt;
  return buffer(dealt, rank, draw);
}

std::optional<Buffer> EpochList::next_buffer(const DealtEpoch& dealt, int rank,
                                             const Buffer& before) const {
  const std::uint64_t draw = before.first + before.count;
  if (draw >= dealt.draws(rank)) return std::nullopt;
  return buffer(dealt, rank, draw);
}

Buffer EpochList::load_singly(const DealtEpoch& dealt, int rank, const Run& draws) const {
  Buffer buffer{.loads = {}, .first = draws.first, .count = draws.count};
  std::vector<Draw> drawn(draws.count);
  this->draws(dealt, rank, draws.first, drawn);
  for (const auto& [sample, position, repeat] : drawn) {
    Run* last = buffer.loads.empty() ? nullptr : &buffer.loads.back();
    if (last != nullptr && last->first + last->count == sample) {
      ++last->count;
    } else {
      buffer.loads.push_back({sample, 1});
    }
  }
  return buffer;
}

Run window_around(std::uint64_t share, std::uint64_t window, std::uint64_t draw, std::uint64_t from,
                  std::uint64_t end) {
  const std::uint64_t length = share * window;
  const std::uint64_t first = std::max(from, draw / length * length);
  return {first, std::min(end, draw / length * length + length) - first};
}

std::uint64_t order_key(OrderKey purpose, std::uint64_t seed, std::uint64_t epoch) {
  return mix_key({static_cast<std::uint64_t>(purpose), seed, epoch});
}

}  // namespace forebay
