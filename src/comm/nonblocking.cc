#include "comm/nonblocking.hpp"

#include <fmt/format.h>

#include <climits>

#include "forebay/error.hpp"

namespace forebay {

void require_gatherable(std::size_t mine, std::size_t all, int ranks) {
  if (all == mine * static_cast<std::size_t>(ranks)) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} bytes of each of {} ranks do not make {}", mine, ranks, all), "");
}

void require_exchangeable(std::size_t mine, std::size_t theirs, int ranks) {
  if (mine == theirs && mine % static_cast<std::size_t>(ranks) == 0) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("{} bytes cannot be dealt to {} ranks and become {}", mine, ranks, theirs), "");
}

int require_countable(std::size_t elements) {
  if (elements <= static_cast<std::size_t>(INT_MAX)) return static_cast<int>(elements);
  throw Error(ErrorKind::usage, fmt::format("{} elements are too many for one operation", elements),
              "move them in parts");
}

}  // namespace forebay
