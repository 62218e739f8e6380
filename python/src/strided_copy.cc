// Between an array of any layout and plain memory.
//
// The dimension whose elements lie closest in the array and the one whose elements lie closest in
// plain memory are walked together, in tiles: what a transposition touches stays in the cache.
#include "memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace forebay::python {
namespace {

/// One dimension: how many elements, and how far apart they are, in bytes.
struct Axis {
  std::int64_t extent = 1;
  std::int64_t array = 0;
  std::int64_t plain = 0;
};

/// The innermost first. Dimensions that go on where the next one ends are one, and there are two at
/// least.
std::vector<Axis> axes_of(const Layout& layout) {
  std::vector<Axis> axes;
  auto step = static_cast<std::int64_t>(size_of(layout.type));
  for (std::size_t d = layout.shape.size(); d-- > 0;) {
    const auto extent = static_cast<std::int64_t>(layout.shape[d]);
    if (extent == 1) continue;
    if (!axes.empty() && axes.back().array * axes.back().extent == layout.strides[d]) {
      axes.back().extent *= extent;
    } else {
      axes.push_back({.extent = extent, .array = layout.strides[d], .plain = step});
    }
    step *= extent;
  }
  while (axes.size() < 2) axes.push_back({});
  return axes;
}

/// Puts the dimension whose elements lie closest in the array beside the innermost one.
void put_closest_second(std::vector<Axis>& axes) {
  const auto closest = std::min_element(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    if ((a.extent == 1) != (b.extent == 1)) return b.extent == 1;
    return std::abs(a.array) < std::abs(b.array);
  });
  if (closest != axes.begin()) std::iter_swap(axes.begin() + 1, closest);
}

/// Array to plain memory, or back. `Bytes` of each element.
template <std::size_t Bytes, bool kGather, bool kSwap>
class Copier {
 public:
  explicit Copier(const Layout& layout) : axes_(axes_of(layout)) { put_closest_second(axes_); }

  void copy(std::byte* array, std::byte* plain) const { copy_axis(axes_.size(), array, plain); }

 private:
  static constexpr std::int64_t kTile = 32;

  static void copy_element(std::byte* array, std::byte* plain) {
    std::byte* const into = kGather ? plain : array;
    std::memcpy(into, kGather ? array : plain, Bytes);
    if constexpr (kSwap) std::reverse(into, into + Bytes);
  }

  void copy_axis(std::size_t left, std::byte* array, std::byte* plain) const {
    if (left == 2) return copy_plane(array, plain);
    const Axis& axis = axes_[left - 1];
    for (std::int64_t i = 0; i < axis.extent; ++i) {
      copy_axis(left - 1, array + i * axis.array, plain + i * axis.plain);
    }
  }

  void copy_plane(std::byte* array, std::byte* plain) const {
    const Axis& inner = axes_[0];
    const Axis& outer = axes_[1];
    if (!kSwap && inner.array == static_cast<std::int64_t>(Bytes)) {
      return copy_rows(array, plain, static_cast<std::size_t>(inner.extent) * Bytes);
    }
    for (std::int64_t j = 0; j < outer.extent; j += kTile) {
      const std::int64_t rows = std::min(kTile, outer.extent - j);
      for (std::int64_t i = 0; i < inner.extent; i += kTile) {
        const std::int64_t columns = std::min(kTile, inner.extent - i);
        copy_tile(array + j * outer.array + i * inner.array,
                  plain + j * outer.plain + i * inner.plain, rows, columns);
      }
    }
  }

  /// Whose elements lie one behind the other on both sides.
  void copy_rows(std::byte* array, std::byte* plain, std::size_t bytes) const {
    const Axis& outer = axes_[1];
    for (std::int64_t j = 0; j < outer.extent; ++j) {
      std::byte* const there = array + j * outer.array;
      std::byte* const here = plain + j * outer.plain;
      std::memcpy(kGather ? here : there, kGather ? there : here, bytes);
    }
  }

  void copy_tile(std::byte* array, std::byte* plain, std::int64_t rows,
                 std::int64_t columns) const {
    const Axis inner = axes_[0];
    const Axis outer = axes_[1];
    for (std::int64_t j = 0; j < rows; ++j) {
      std::byte* there = array + j * outer.array;
      std::byte* here = plain + j * outer.plain;
      for (std::int64_t i = 0; i < columns; ++i, there += inner.array, here += inner.plain) {
        copy_element(there, here);
      }
    }
  }

  std::vector<Axis> axes_;
};

template <std::size_t Bytes, bool kGather>
void copy_elements(std::byte* array, std::byte* plain, const Layout& layout) {
  if (layout.swapped) return Copier<Bytes, kGather, true>(layout).copy(array, plain);
  Copier<Bytes, kGather, false>(layout).copy(array, plain);
}

template <bool kGather>
void copy(std::byte* array, std::byte* plain, const Layout& layout) {
  if (layout.elements() == 0) return;
  const std::size_t bytes = size_of(layout.type);
  if (layout.plain()) {
    std::memcpy(kGather ? plain : array, kGather ? array : plain, layout.elements() * bytes);
    return;
  }
  if (bytes == 2) copy_elements<2, kGather>(array, plain, layout);
  if (bytes == 4) copy_elements<4, kGather>(array, plain, layout);
  if (bytes == 8) copy_elements<8, kGather>(array, plain, layout);
}

}  // namespace

std::uint64_t Layout::elements() const {
  std::uint64_t product = 1;
  for (const std::uint64_t extent : shape) product *= extent;
  return product;
}

bool Layout::plain() const {
  if (swapped) return false;
  auto expected = static_cast<std::int64_t>(size_of(type));
  if (elements() == 0) return true;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] > 1 && strides[d] != expected) return false;
    expected *= static_cast<std::int64_t>(shape[d]);
  }
  return true;
}

bool Layout::distinct() const {
  if (elements() == 0) return true;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> steps;  // and how many of each
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto step = static_cast<std::uint64_t>(std::abs(strides[d]));
    if (shape[d] > 1) steps.emplace_back(step, shape[d] - 1);
  }
  std::ranges::sort(steps);
  std::uint64_t reach = size_of(type);  // of all smaller steps together
  for (const auto& [step, count] : steps) {
    if (step < reach) return false;
    reach += step * count;
  }
  return true;
}

void gather(const std::byte* first, const Layout& layout, std::span<std::byte> into) {
  copy<true>(const_cast<std::byte*>(first), into.data(), layout);
}

void scatter(std::span<const std::byte> from, std::byte* first, const Layout& layout) {
  copy<false>(first, const_cast<std::byte*>(from.data()), layout);
}

}  // namespace forebay::python
