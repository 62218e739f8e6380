// Orders as pure functions, for what is mixed or planned in Python.
#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "core/permutation.hpp"
#include "forebay/epoch_order.hpp"
#include "forebay/error.hpp"
#include "forebay/options.hpp"
#include "forebay/sample_seed.hpp"
#include "module.hpp"
#include "unlocked.hpp"

namespace forebay::python {
namespace {

/// Where the numbers [first, first + count) of 0..size-1 go.
nb::object permute(std::uint64_t size, std::uint64_t key, std::uint64_t first,
                   std::uint64_t count) {
  if (size == 0 || size > Permutation::kMostSize || first > size || count > size - first) {
    throw Error(ErrorKind::usage, "the numbers to permute are not all below the size",
                "give 1 <= size <= 2^48 and first + count <= size");
  }
  std::vector<std::uint64_t> images(count);
  {
    const Unlocked unlocked;
    Permutation(size, key).images(first, images);
  }
  return array_of(std::move(images));
}

/// The samples of `rank` in `epoch`, in the order of delivery.
nb::object order_ids(const LoaderOptions& options, std::uint64_t entries, int ranks, int rank,
                     std::uint64_t epoch) {
  std::vector<std::int64_t> ids;
  {
    const Unlocked unlocked;
    OrderOptions wanted = options;
    wanted.entries = entries;
    wanted.ranks = ranks;
    const EpochOrder order(wanted, epoch);
    std::vector<Draw> draws(order.draws(rank));
    order.draws(rank, 0, draws);
    for (const Draw& draw : draws) ids.push_back(static_cast<std::int64_t>(draw.sample));
  }
  return array_of(std::move(ids));
}

}  // namespace

void add_order(nb::module_& module) {
  module.def("permute", &permute, nb::arg("size"), nb::arg("key"), nb::arg("first"),
             nb::arg("count"));
  module.def("order_ids", &order_ids, nb::arg("options"), nb::arg("entries"), nb::arg("ranks"),
             nb::arg("rank"), nb::arg("epoch"));
  module.def("sample_seed", &sample_seed, nb::arg("run_seed"), nb::arg("epoch"), nb::arg("sample"));
}

}  // namespace forebay::python
