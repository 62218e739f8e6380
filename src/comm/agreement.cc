#include "comm/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "comm/values.hpp"
#include "forebay/error.hpp"

namespace forebay {

void require_agreement(Communicator& comm, const std::string& text, const std::string& what) {
  const std::string first = broadcast_text(comm, text, 0);
  collectively(comm, [&] {
    if (text == first) return;
    throw Error(ErrorKind::usage,
                fmt::format("{} here: {}; on rank 0: {}", what, text.empty() ? "none" : text,
                            first.empty() ? "none" : first),
                "start all ranks with the same arguments");
  });
}

bool everywhere(Communicator& comm, bool holds) {
  const auto all = gather_all(comm, std::uint8_t{holds});
  return std::ranges::all_of(all, [](std::uint8_t one) { return one != 0; });
}

}  // namespace forebay
