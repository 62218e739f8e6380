// The only place where numbers of another byte order are turned around.
#include <algorithm>
#include <cstring>

#include "format/field_storage.hpp"

namespace forebay {
namespace {

// Each number is loaded whole and stored whole, which compilers turn into vector shuffles.
template <std::size_t kWidth>
void swap_all(std::span<std::byte> numbers) {
  for (std::size_t i = 0; i + kWidth <= numbers.size(); i += kWidth) {
    std::byte number[kWidth];
    std::memcpy(number, &numbers[i], kWidth);
    std::reverse(number, number + kWidth);
    std::memcpy(&numbers[i], number, kWidth);
  }
}

}  // namespace

void swap_bytes(std::span<std::byte> numbers, std::uint32_t width) {
  switch (width) {
    case 2:
      return swap_all<2>(numbers);
    case 4:
      return swap_all<4>(numbers);
    case 8:
      return swap_all<8>(numbers);
    default:
      return;
  }
}

}  // namespace forebay
