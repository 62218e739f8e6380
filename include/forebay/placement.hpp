// Which cores each part of a training process runs on, so that its threads do not fight for them
// (paper 002, 6.3.3: every component its own cores).
//
//   io        threads that read and fetch samples          progress  the one thread that moves
//   decode    threads that decode them                               messages and sums gradients
//   compute   the program's own threads: scheduler, mathematics
//
// A policy says how cores are given:
//
//   shared                          all threads run wherever the process may run
//   partition                       each component its own cores, as far as there are enough
//   cores:LIST                      io, decode and progress on these cores, compute anywhere
//   progress:0/io:1/decode:1-3,6    these; a component that is not named runs anywhere
//
// Cores are operating system numbers. `partition` looks at the machine: ranks that may run on the
// same cores divide them first, a slice of whole cores (SMT siblings together) each. Of its slice a
// rank gives the first core to progress, the next to compute, then to decode, then to io; who gets
// none joins the one before it, but never the progress thread unless there is one core in all:
//
//   1 core    everybody shares it            3 cores   progress | compute | decode + io
//   2 cores   progress | the others          4 cores   progress | compute | decode | io
//
// Where ranks outnumber cores, all of a rank is on one core, the cores being dealt out in turn;
// what is said about the plan tells with how many ranks.
//
// More cores go one by one to the component that has the fewest for its threads.
//
// A program makes one plan and hands its text to all it starts, which then agree:
//
//   const CorePlan plan = plan_cores(*comm, "partition");
//   loader_options.placement = plan.to_text();
//   sync_options.placement = plan.to_text();
//   plan.place_this_thread(Component::compute);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace forebay {

class Communicator;

enum class Component : std::uint8_t { progress, compute, decode, io };
inline constexpr std::size_t kComponents = 4;
std::string_view to_string(Component component);

/// Threads of each component in a process: it gets no more cores than these, but for compute, which
/// gets what nobody wants. 0: it has none, and gets no cores.
struct ComponentThreads {
  static constexpr unsigned kAny = std::numeric_limits<unsigned>::max();
  unsigned progress = 1;
  unsigned compute = kAny;
  unsigned decode = kAny;
  unsigned io = 1;

  unsigned of(Component component) const;
};

/// Value type; an empty one is `shared`. Thread-safe as such.
class CorePlan {
 public:
  CorePlan() = default;
  /// Reads every policy but `partition`, which needs to know the other ranks: see plan_cores().
  /// Throws usage.
  static CorePlan parse(std::string_view text);

  /// Ascending; empty: wherever the process may run.
  std::span<const int> of(Component component) const { return cores_[index(component)]; }
  /// Throws usage for a core number that is negative or above 65535.
  void give(Component component, std::vector<int> cores);
  /// What parse() reads.
  std::string to_text() const;
  /// For people and statistics: "progress on core 0, the others on core 1 (rank 1 of 2 on 4
  /// cores)".
  std::string explain() const;
  void set_reason(std::string reason) { reason_ = std::move(reason); }
  /// Binds the calling thread to the cores of `component`. Throws usage when one is not available.
  void place_this_thread(Component component) const;
  /// The same cores for the same components.
  bool operator==(const CorePlan& other) const { return cores_ == other.cores_; }

 private:
  static constexpr std::size_t index(Component component) {
    return static_cast<std::size_t>(component);
  }

  std::array<std::vector<int>, kComponents> cores_;
  std::string reason_;
};

/// Throws usage unless plan_cores() can read it.
void require_placement_policy(std::string_view policy);

/// Decides for this rank what `policy` says, and logs what it has decided. Collective over `comm`,
/// whose ranks may give policies of their own; `partition` divides cores between those that say so,
/// and takes some milliseconds. Throws usage, and io where the machine does not tell its cores.
CorePlan plan_cores(Communicator& comm, std::string_view policy,
                    const ComponentThreads& threads = {});

}  // namespace forebay
