#include "train/cores.hpp"

#include "forebay/placement.hpp"

namespace forebay {
namespace {

constexpr const char* kShared = "shared";

std::string policy_of(const TrainOptions& options) {
  const bool apart = options.gradients.strategy.own_cores;
  return apart && options.loader.placement == kShared ? "partition" : options.loader.placement;
}

}  // namespace

void place_components(Communicator& comm, TrainOptions& options, int compute_threads) {
  const std::string policy = policy_of(options);
  if (policy == kShared) return;
  const unsigned decoders = options.loader.decode_threads;
  const CorePlan plan = plan_cores(comm, policy,
                                   {.compute = static_cast<unsigned>(compute_threads),
                                    .decode = decoders > 0 ? decoders : ComponentThreads::kAny});
  options.loader.placement = options.gradients.placement = plan.to_text();
  plan.place_this_thread(Component::compute);
}

}  // namespace forebay
