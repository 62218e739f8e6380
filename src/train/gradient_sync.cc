#include "train/gradient_sync.hpp"

#include <utility>

#include "core/names.hpp"
#include "train/background_sync.hpp"
#include "train/server_sync.hpp"

namespace forebay {
namespace {

constexpr Name<GradientStrategy> kStrategies[] = {
    {"auto", GradientStrategy::automatic},      {"blocking", GradientStrategy::blocking},
    {"negotiate", GradientStrategy::negotiate}, {"gs", GradientStrategy::gs},
    {"nbcs", GradientStrategy::nbcs},           {"scp", GradientStrategy::scp},
    {"topo", GradientStrategy::topo},           {"scp-topo", GradientStrategy::scp_topo},
    {"servers", GradientStrategy::servers}};

constexpr Name<WireFormat> kWires[] = {{"none", WireFormat::as_is},
                                       {"float16", WireFormat::float16},
                                       {"bfloat16", WireFormat::bfloat16}};

class BlockingSync final : public GradientSync {
 public:
  BlockingSync(std::shared_ptr<Communicator> comm, Network& network)
      : comm_(std::move(comm)), network_(network) {
    comm_->broadcast(std::as_writable_bytes(network_.parameters()), 0);
  }

  void ready(std::size_t) override {}
  void finish() override {
    comm_->all_reduce_sum(network_.exchange());
    statistics_.bytes += network_.gradients().size_bytes();
  }
  void fail(const Error&) override {}  // the others wait in a collective call: see interrupt
  void close() override {}

  GradientStrategy strategy() const override { return GradientStrategy::blocking; }
  GradientStatistics statistics() const override { return statistics_; }
  std::string explain() const override {
    return "blocking: one all-reduce after the backward pass";
  }

 private:
  std::shared_ptr<Communicator> comm_;
  Network& network_;
  GradientStatistics statistics_;
};

}  // namespace

std::string_view to_string(GradientStrategy strategy) { return name_of(strategy, kStrategies); }

GradientStrategy parse_gradient_strategy(std::string_view text) {
  return parse_name("sync", text, kStrategies);
}

WireFormat parse_wire_format(std::string_view text) { return parse_name("wire", text, kWires); }

std::unique_ptr<GradientSync> make_gradient_sync(const std::shared_ptr<Communicator>& comm,
                                                 Network& network, Solver& solver,
                                                 const GradientOptions& options,
                                                 std::function<void()> interrupt) {
  GradientOptions chosen = options;
  if (chosen.strategy == GradientStrategy::automatic) {
    const bool alone = comm->size() == 1 || !comm->concurrent();
    chosen.strategy = alone ? GradientStrategy::blocking : GradientStrategy::topo;
  }
  if (chosen.strategy == GradientStrategy::blocking) {
    return std::make_unique<BlockingSync>(comm, network);
  }
  if (chosen.strategy == GradientStrategy::servers) {
    return make_server_sync(comm, network, solver, chosen, std::move(interrupt));
  }
  return make_background_sync(comm, network, chosen, std::move(interrupt));
}

double overlap(std::span<const GradientStatistics> ranks) {
  double early = 0;
  double all = 0;
  for (const GradientStatistics& rank : ranks) {
    early += static_cast<double>(rank.early_bytes);
    all += static_cast<double>(rank.bytes);
  }
  return all > 0 ? early / all : 0;
}

}  // namespace forebay
