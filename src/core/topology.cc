#include "core/topology.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <utility>

#include "core/names.hpp"
#include "core/placement.hpp"
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

namespace {

// In the order in which they get cores.
constexpr Component kInOrder[] = {Component::progress, Component::compute, Component::decode,
                                  Component::io};
constexpr Component kHelpers[] = {Component::progress, Component::decode, Component::io};
constexpr Name<Component> kNames[] = {{"progress", Component::progress},
                                      {"compute", Component::compute},
                                      {"decode", Component::decode},
                                      {"io", Component::io}};

/// "1-3,6" of ascending numbers.
std::string list_text(std::span<const int> cores) {
  std::string text;
  for (std::size_t begin = 0; begin < cores.size();) {
    std::size_t end = begin + 1;
    while (end < cores.size() && cores[end] == cores[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(cores[begin]);
    if (end - begin > 1) text += fmt::format("-{}", cores[end - 1]);
    begin = end;
  }
  return text;
}

/// Components that share cores form a group, which is what cores are given to.
struct Group {
  std::vector<Component> components;
  std::uint64_t threads = 0;
  std::size_t cores = 1;

  bool wants_more() const { return cores < threads; }
};

/// One group for every core, at most one for every component; the first is that of the progress
/// thread alone, unless it is the only one.
std::vector<Group> groups_for(std::size_t cores, const ComponentThreads& threads) {
  std::vector<Group> groups;
  for (const Component component : kInOrder) {
    if (threads.of(component) == 0) continue;
    if (groups.size() < cores) groups.emplace_back();
    groups.back().components.push_back(component);
    groups.back().threads += threads.of(component);
  }
  return groups;
}

/// To whom the next core goes: the most threads on each of its cores; compute, when nobody wants.
Group& neediest(std::vector<Group>& groups) {
  const auto load = [](const Group& group) {
    return static_cast<double>(group.threads) / static_cast<double>(group.cores);
  };
  Group* found = nullptr;
  for (Group& group : groups) {
    if (!group.wants_more()) continue;
    if (found == nullptr || load(group) > load(*found)) found = &group;
  }
  if (found != nullptr) return *found;
  const auto has_compute = [](const Group& group) {
    return std::ranges::find(group.components, Component::compute) != group.components.end();
  };
  const auto compute = std::ranges::find_if(groups, has_compute);
  return compute == groups.end() ? groups.back() : *compute;
}

std::vector<int> threads_of(std::span<const CoreThreads> cores) {
  std::vector<int> all;
  for (const CoreThreads& core : cores) all.insert(all.end(), core.begin(), core.end());
  return all;
}

std::string names_of(const std::vector<Component>& components) {
  std::vector<std::string_view> names;
  for (const Component component : components) names.push_back(to_string(component));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string_view to_string(Component component) { return name_of(component, kNames); }

unsigned ComponentThreads::of(Component component) const {
  switch (component) {
    case Component::progress:
      return progress;
    case Component::compute:
      return compute;
    case Component::decode:
      return decode;
    case Component::io:
      return io;
  }
  return 0;
}

CorePlan CorePlan::parse(std::string_view text) {
  CorePlan plan;
  if (text == "shared") return plan;
  if (text.starts_with("cores:")) {
    for (const Component helper : kHelpers) plan.give(helper, Placement::parse(text).cores);
    return plan;
  }
  for (std::string_view rest = text;;) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos) {
      throw Error(ErrorKind::usage, fmt::format("placement: '{}' is not known", text),
                  "write shared, partition, cores:LIST such as cores:0,2-3, or lists of "
                  "components such as progress:0/decode:1-3");
    }
    const Component component = parse_name("placement", part.substr(0, colon), kNames);
    if (!plan.of(component).empty()) {
      throw Error(ErrorKind::usage,
                  fmt::format("placement: {} is named twice in '{}'", to_string(component), text),
                  "name it once");
    }
    plan.give(component, Placement::parse(fmt::format("cores:{}", part.substr(colon + 1))).cores);
    if (slash == std::string_view::npos) return plan;
    rest.remove_prefix(slash + 1);
  }
}

void require_placement_policy(std::string_view policy) {
  if (policy != "partition") CorePlan::parse(policy);
}

void CorePlan::give(Component component, std::vector<int> cores) {
  constexpr int kMaxCore = 65'535;
  for (const int core : cores) {
    if (core >= 0 && core <= kMaxCore) continue;
    throw Error(ErrorKind::usage, fmt::format("placement: {} is no core", core),
                fmt::format("cores are numbered from 0 to {}", kMaxCore));
  }
  std::ranges::sort(cores);
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  cores_[index(component)] = std::move(cores);
}

std::string CorePlan::to_text() const {
  if (*this == CorePlan()) return "shared";
  const auto helpers = of(Component::progress);
  const bool alike = std::ranges::all_of(
      kHelpers, [&](Component helper) { return std::ranges::equal(of(helper), helpers); });
  if (alike && of(Component::compute).empty()) return "cores:" + list_text(helpers);
  std::string text;
  for (const Component component : kInOrder) {
    if (of(component).empty()) continue;
    text += fmt::format("{}{}:{}", text.empty() ? "" : "/", to_string(component),
                        list_text(of(component)));
  }
  return text;
}

std::string CorePlan::explain() const {
  std::vector<std::pair<std::vector<Component>, std::span<const int>>> groups;
  for (const Component component : kInOrder) {
    const auto cores = of(component);
    const auto same = std::ranges::find_if(
        groups, [&](const auto& group) { return std::ranges::equal(group.second, cores); });
    if (same == groups.end()) {
      groups.push_back({{component}, cores});
    } else {
      same->first.push_back(component);
    }
  }
  std::string text;
  for (const auto& [components, cores] : groups) {
    text += fmt::format(
        "{}{} {}", text.empty() ? "" : "; ", names_of(components),
        cores.empty() ? std::string("anywhere") : fmt::format("on {}", list_text(cores)));
  }
  if (!reason_.empty()) text += fmt::format(" ({})", reason_);
  return text;
}

void CorePlan::place_this_thread(Component component) const {
  forebay::place_this_thread(Placement::of(*this, component));
}

std::span<const CoreThreads> slice_of(std::span<const CoreThreads> cores, int rank, int ranks) {
  if (static_cast<std::size_t>(ranks) > cores.size()) {
    return cores.subspan(static_cast<std::size_t>(rank) % cores.size(), 1);
  }
  const auto at = [&](int i) {
    return cores.size() * static_cast<std::size_t>(i) / static_cast<std::size_t>(ranks);
  };
  return cores.subspan(at(rank), at(rank + 1) - at(rank));
}

CorePlan divide(std::span<const CoreThreads> slice, const ComponentThreads& threads) {
  std::vector<Group> groups = groups_for(slice.size(), threads);
  CorePlan plan;
  if (groups.empty()) return plan;
  for (std::size_t left = slice.size() - groups.size(); left > 0; --left) ++neediest(groups).cores;
  std::size_t next = 0;
  for (const Group& group : groups) {
    const std::vector<int> cores = threads_of(slice.subspan(next, group.cores));
    next += group.cores;
    for (const Component component : group.components) plan.give(component, cores);
  }
  return plan;
}

}  // namespace forebay
