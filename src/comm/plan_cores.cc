// How many ranks of this machine may run on the same cores as this one, and which of them it is:
// all tell a number that stands for their machine and their cores.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include "comm/values.hpp"
#include "core/log.hpp"
#include "core/mix.hpp"
#include "core/topology.hpp"
#include "forebay/placement.hpp"

namespace forebay {
namespace {

/// The same in all containers of a machine, and of no two machines.
std::string machine_name() {
  std::string name;
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  if (std::getline(boot, name)) return name;
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

/// Of machine and cores.
std::uint64_t place_number(const std::vector<int>& cores) {
  std::uint64_t number = 0;
  for (const char c : machine_name()) number = mix(number + static_cast<unsigned char>(c) + 1);
  for (const int core : cores) number = mix(number ^ (static_cast<std::uint64_t>(core) + kGolden));
  return number;
}

std::string reason(int rank, int ranks, int cores) {
  std::string text =
      fmt::format("rank {} of {} on {} core{}", rank, ranks, cores, cores == 1 ? "" : "s");
  if (ranks <= cores) return text;
  const int on_this_core = ranks / cores + (rank % cores < ranks % cores ? 1 : 0);
  text += fmt::format(", fewer than ranks: {} of them on this one", on_this_core);
  return text;
}

CorePlan partition(const Communicator& comm, const std::vector<CoreThreads>& cores,
                   const std::vector<std::uint64_t>& places, const ComponentThreads& threads) {
  const std::uint64_t place = places[static_cast<std::size_t>(comm.rank())];
  const auto same = static_cast<int>(std::ranges::count(places, place));
  const auto before = static_cast<int>(
      std::count(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(comm.rank()), place));
  if (cores.empty()) return {};
  CorePlan plan = divide(slice_of(cores, before, same), threads);
  plan.set_reason(reason(before, same, static_cast<int>(cores.size())));
  return plan;
}

}  // namespace

// All ranks do the same, whatever their policies are, which therefore may differ.
CorePlan plan_cores(Communicator& comm, std::string_view policy, const ComponentThreads& threads) {
  const bool decides = policy == "partition";
  CorePlan plan;
  std::vector<CoreThreads> cores;
  std::uint64_t place = 0;
  collectively(comm, [&] {
    if (!decides) {
      plan = CorePlan::parse(policy);
      return;
    }
    const Topology topology;
    const std::vector<int> available = topology.available();
    cores = topology.cores(available);
    place = place_number(available);
  });
  const std::vector<std::uint64_t> places = gather_all(comm, place);
  if (decides) plan = partition(comm, cores, places, threads);
  // What was decided is news once; plans are handed on as lists.
  if (decides) log(LogLevel::info, "placement: {}", plan.explain());
  return plan;
}

}  // namespace forebay
