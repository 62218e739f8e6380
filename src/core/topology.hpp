// What hwloc knows of the machine. Loading it reads many small files: made only when needed.
#pragma once

#include <hwloc.h>

#include <span>
#include <string>
#include <vector>

#include "core/non_copyable.hpp"
#include "forebay/placement.hpp"

namespace forebay {

/// The hardware threads of one core that may be used, ascending (operating system numbers).
using CoreThreads = std::vector<int>;

class Topology : private NonCopyable {
 public:
  /// This machine. Throws io.
  Topology();
  /// A machine that does not exist, as hwloc describes them: "package:2 core:4 pu:2".
  explicit Topology(const std::string& synthetic);
  ~Topology() { hwloc_topology_destroy(topology_); }

  hwloc_topology_t get() const { return topology_; }

  /// The hardware threads on which this process may run, ascending.
  std::vector<int> available() const;
  /// Those of `available`, by the cores that they belong to; neighbours share caches and memory.
  std::vector<CoreThreads> cores(const std::vector<int>& available) const;

 private:
  hwloc_topology_t topology_ = nullptr;
};

/// A set of hardware threads.
class CpuSet : private NonCopyable {
 public:
  CpuSet();
  ~CpuSet() { hwloc_bitmap_free(bitmap_); }

  hwloc_bitmap_t get() const { return bitmap_; }
  std::vector<int> numbers() const;

 private:
  hwloc_bitmap_t bitmap_;
};

// How the policy `partition` divides cores: see forebay/placement.hpp. Pure functions.

/// The slice of the `rank`-th of `ranks` that may all run on `cores`. Where there are fewer cores
/// than ranks, each gets one of them in turn: the loads of two cores differ by one rank at most.
/// `cores` is not empty.
std::span<const CoreThreads> slice_of(std::span<const CoreThreads> cores, int rank, int ranks);

/// Divides the slice of a rank between its components. `slice` is not empty.
CorePlan divide(std::span<const CoreThreads> slice, const ComponentThreads& threads);

}  // namespace forebay
