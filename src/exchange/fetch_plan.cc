#include "exchange/fetch_plan.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

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

}  // namespace forebay
