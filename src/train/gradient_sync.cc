#include "train/gradient_sync.hpp"

#include <optional>
#include <utility>

#include "core/names.hpp"
#include "sync/gradient_sum.hpp"

namespace forebay {
namespace {

constexpr const char* kAutomatic = "auto";

constexpr Name<WireFormat> kWires[] = {{"none", WireFormat::as_is},
                                       {"float16", WireFormat::float16},
                                       {"bfloat16", WireFormat::bfloat16}};

/// The gradient of each part, and `tail` as one more where it is not empty.
std::vector<Gradient> gradients_of(Network& network, std::span<const TensorSpec> tail) {
  std::vector<Gradient> gradients;
  std::size_t part = 0;
  for (const TensorSpec& tensor : tensors_of(network)) {
    const Part& where = network.parts()[part++];
    gradients.push_back({tensor, network.gradients().subspan(where.offset, where.size())});
  }
  for (const TensorSpec& tensor : tail) gradients.push_back({tensor, network.tail()});
  return gradients;
}

/// Sums gradients, and with them what stands behind them where it is not to be rounded on its way.
class SummingSync final : public GradientSync {
 public:
  SummingSync(const std::shared_ptr<Communicator>& comm, Network& network,
              const GradientOptions& options, std::function<void()> interrupt)
      : comm_(comm),
        network_(network),
        parts_(network.parts().size()),
        sums_tail_(options.wire == WireFormat::as_is || !options.strategy.agree),
        in_background_(options.strategy.agree != nullptr),
        given_(parts_) {
    std::vector<TensorSpec> tail;
    if (sums_tail_) tail.push_back(tail_of(network));
    GradientSumOptions sum{.engine = options,
                           .graph = {},
                           .initial = network.parameters(),
                           .interrupt = std::move(interrupt)};
    sum.engine.strategy.own_cores = false;  // the whole process has them by now
    if (options.graph_given) sum.graph = graph_of(network, tail);
    sum_ = make_gradient_sum(comm, gradients_of(network, tail), network.exchange(), sum);
  }

  void ready(std::size_t part) override {
    sum_->start(part);
    given_[part] = true;
  }

  void finish() override {
    // As the backward pass would have given them.
    for (std::size_t part = parts_; part-- > 0;) {
      if (!given_[part]) ready(part);
    }
    if (sums_tail_) sum_->start(parts_);
    sum_->end_step();
    count_early();
    for (std::size_t part = 0; part < parts_; ++part) sum_->wait(part);
    if (sums_tail_) {
      sum_->wait(parts_);
    } else {
      comm_->all_reduce_sum(network_.tail());
    }
    given_.assign(parts_, false);
  }

  void fail(const Error& error) override { sum_->fail(error); }
  void close() override { sum_->close(); }

  GradientStatistics statistics() const override {
    GradientStatistics statistics = statistics_;
    if (in_background_) statistics.engine = sum_->statistics();
    return statistics;
  }
  std::string explain() const override { return sum_->explain(); }

 private:
  // Not before all of the iteration was started: the engine takes what starts after a sum was seen
  // for something that depends on it.
  void count_early() {
    for (std::size_t part = 0; part < parts_; ++part) {
      const std::uint64_t bytes = network_.parts()[part].size() * sizeof(float);
      statistics_.bytes += bytes;
      if (sum_->done(part)) statistics_.early_bytes += bytes;
    }
  }

  const std::shared_ptr<Communicator> comm_;
  Network& network_;
  const std::size_t parts_;
  const bool sums_tail_;
  const bool in_background_;
  std::vector<bool> given_;  ///< which parts have begun in this iteration
  GradientStatistics statistics_;
  std::unique_ptr<GradientSum> sum_;  ///< last, so that it ends before what it works on
};

/// Adds `node`, which needs `from`.
std::size_t add_after(Graph& graph, std::optional<std::size_t> from, GraphNode node) {
  const std::size_t added = graph.add(std::move(node));
  if (from) graph.connect(*from, added);
  return added;
}

GraphNode transfer_of(const TensorSpec& tensor) {
  return {.name = tensor.name,
          .collective = true,
          .type = tensor.type,
          .reduction = Reduction::sum,
          .shape = tensor.shape};
}

}  // namespace

std::vector<SyncWay> gradient_ways() {
  std::vector<SyncWay> ways = sync_ways();
  ways.insert(ways.begin(), {.name = kAutomatic, .help = "topo, or blocking for one rank"});
  return ways;
}

WireFormat parse_wire_format(std::string_view text) { return parse_name("wire", text, kWires); }

SyncWay resolve(const SyncWay& way, const Communicator& comm) {
  if (way.name != kAutomatic) return way;
  SyncWay chosen = find_sync_way(comm.size() == 1 || !comm.concurrent() ? "blocking" : "topo");
  chosen.own_cores = way.own_cores;
  return chosen;
}

std::unique_ptr<GradientSync> make_gradient_sync(const std::shared_ptr<Communicator>& comm,
                                                 Network& network, Solver& solver,
                                                 const GradientOptions& options,
                                                 std::function<void()> interrupt) {
  if (options.strategy.has_servers) {
    return make_server_sync(comm, network, solver, options, std::move(interrupt));
  }
  return std::make_unique<SummingSync>(comm, network, options, std::move(interrupt));
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

std::vector<TensorSpec> tensors_of(const Network& network) {
  std::vector<TensorSpec> tensors;
  for (const Part& part : network.parts()) {
    tensors.push_back({.name = part.name, .type = TensorType::float32, .shape = part.shape});
  }
  return tensors;
}

TensorSpec tail_of(Network& network) {
  return {.name = kTailName, .type = TensorType::float32, .shape = {network.tail().size()}};
}

GraphFile graph_of(const Network& network, std::span<const TensorSpec> behind) {
  const std::vector<TensorSpec> tensors = tensors_of(network);
  GraphFile result;
  Graph& graph = result.graph;
  const auto add_sum = [&](std::optional<std::size_t> after, const TensorSpec& tensor) {
    const std::size_t sum = add_after(graph, after, transfer_of(tensor));
    result.fetches.push_back("update " + tensor.name);
    add_after(graph, sum, {.name = result.fetches.back()});
  };
  std::optional<std::size_t> last;
  for (const TensorSpec& tensor : tensors) {
    last = add_after(graph, last, {.name = "forward " + tensor.name});
  }
  for (std::size_t part = tensors.size(); part-- > 0;) {
    last = add_after(graph, last, {.name = "backward " + tensors[part].name});
    add_sum(last, tensors[part]);
  }
  for (const TensorSpec& tensor : behind) add_sum(last, tensor);
  return result;
}

}  // namespace forebay
