#include "core/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "forebay/error.hpp"

namespace forebay {
namespace {

[[noreturn]] void fail(const char* step) {
  throw Error(ErrorKind::io, fmt::format("the machine's topology cannot be {} (hwloc)", step),
              "use the placement 'shared'");
}

}  // namespace

Topology::Topology() {
  if (hwloc_topology_init(&topology_) != 0) fail("created");
  if (hwloc_topology_load(topology_) != 0) {
    hwloc_topology_destroy(topology_);
    fail("loaded");
  }
}

Topology::Topology(const std::string& synthetic) {
  if (hwloc_topology_init(&topology_) != 0) fail("created");
  if (hwloc_topology_set_synthetic(topology_, synthetic.c_str()) != 0 ||
      hwloc_topology_load(topology_) != 0) {
    hwloc_topology_destroy(topology_);
    fail("made up");
  }
}

std::vector<int> Topology::available() const {
  const CpuSet set;
  if (hwloc_get_cpubind(topology_, set.get(), HWLOC_CPUBIND_PROCESS) != 0) {
    hwloc_bitmap_copy(set.get(), hwloc_topology_get_allowed_cpuset(topology_));
  }
  return set.numbers();
}

// Machines that do not tell their cores get one for every hardware thread.
std::vector<CoreThreads> Topology::cores(const std::vector<int>& available) const {
  std::vector<CoreThreads> cores;
  std::vector<int> left = available;
  hwloc_obj_t core = nullptr;
  while ((core = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_CORE, core)) != nullptr) {
    CoreThreads threads;
    std::erase_if(left, [&](int thread) {
      const bool inside = hwloc_bitmap_isset(core->cpuset, static_cast<unsigned>(thread)) != 0;
      if (inside) threads.push_back(thread);
      return inside;
    });
    if (!threads.empty()) cores.push_back(std::move(threads));
  }
  for (const int thread : left) cores.push_back({thread});
  return cores;
}

CpuSet::CpuSet() : bitmap_(hwloc_bitmap_alloc()) {
  if (bitmap_ == nullptr) throw std::bad_alloc();
}

std::vector<int> CpuSet::numbers() const {
  std::vector<int> numbers;
  for (int i = hwloc_bitmap_first(bitmap_); i != -1; i = hwloc_bitmap_next(bitmap_, i)) {
    numbers.push_back(i);
  }
  return numbers;
}

}  // namespace forebay
