#include "sync/step_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/mix.hpp"
#include "sync/text_digest.hpp"

namespace forebay {

void StepRecorder::start(const Request& request) {
  if (request.operation != SyncOperation::allreduce) return;
  const std::string& name = request.tensor.name;
  if (const auto last = in_step_.find(name);
      last != in_step_.end() && last->second == steps_ended_) {
    end_step();
  }
  look_around();
  in_step_[name] = steps_ended_;
  unseen_.emplace_back(step_.size(), request.state);
  step_.push_back({.tensor = {.name = name,
                              .collective = true,
                              .type = request.tensor.type,
                              .reduction = request.reduction,
                              .shape = request.tensor.shape},
                   .ordinal = ++started_[name],
                   .glimpse = glimpse_});
}

void StepRecorder::look_around() {
  const auto seen = std::partition(unseen_.begin(), unseen_.end(),
                                   [](const auto& one) { return !one.second->seen(); });
  if (seen == unseen_.end()) return;
  ++glimpse_;
  for (auto one = seen; one != unseen_.end(); ++one) step_[one->first].seen_at = glimpse_;
  unseen_.erase(seen, unseen_.end());
}

bool StepRecorder::end_step() {
  if (step_.empty()) return false;
  ended_.push_back(std::exchange(step_, {}));
  unseen_.clear();
  glimpse_ = 0;
  ++steps_ended_;
  return true;
}

std::vector<StepRecord> StepRecorder::take_ended() { return std::exchange(ended_, {}); }

std::uint64_t StepRecorder::started(const std::string& name) const {
  const auto found = started_.find(name);
  return found == started_.end() ? 0 : found->second;
}

void StepRecorder::clear() { *this = StepRecorder(); }

namespace {

struct Place {
  const StartedTensor* first = nullptr;  ///< as rank 0 has started it
  std::uint64_t positions = 0;           ///< summed over ranks
};

bool is_same(const StartedTensor& a, const StartedTensor& b) {
  return a.tensor == b.tensor && a.ordinal == b.ordinal;
}

/// By name; empty where ranks differ.
std::map<std::string, Place> places_of(std::span<const StepRecord> by_rank) {
  std::map<std::string, Place> places;
  for (const StepRecord& record : by_rank) {
    if (record.size() != by_rank[0].size()) return {};
    for (std::size_t i = 0; i < record.size(); ++i) {
      Place& place = places[record[i].tensor.name];
      if (place.first == nullptr) place.first = &record[i];
      if (!is_same(*place.first, record[i])) return {};
      place.positions += i;
    }
  }
  return places.size() == by_rank[0].size() ? places : std::map<std::string, Place>();
}

/// Nodes "\1rank:1" -> "\1rank:2" -> ...: the glimpses of one rank, in time. What it had seen by a
/// glimpse leads to it, what it has started since follows from it.
void add_glimpses(Graph& graph, std::size_t rank, const StepRecord& record) {
  std::uint32_t last = 0;
  for (const StartedTensor& started : record) last = std::max(last, started.glimpse);
  std::vector<std::size_t> glimpses(last + 1);
  for (std::uint32_t i = 1; i <= last; ++i) {
    glimpses[i] = graph.add({.name = fmt::format("\1{}:{}", rank, i)});
    if (i > 1) graph.connect(glimpses[i - 1], glimpses[i]);
  }
  for (const StartedTensor& started : record) {
    const std::size_t tensor = graph.find(started.tensor.name);
    if (started.seen_at != 0 && started.seen_at <= last) {
      graph.connect(tensor, glimpses[started.seen_at]);
    }
    if (started.glimpse != 0) graph.connect(glimpses[started.glimpse], tensor);
  }
}

}  // namespace

std::optional<MergedStep> merge(std::span<const StepRecord> by_rank) {
  const auto places = places_of(by_rank);
  if (places.empty()) return {};
  MergedStep merged;
  std::vector<const Place*> order;
  for (const auto& [name, place] : places) {
    order.push_back(&place);
    merged.ordinals[name] = place.first->ordinal;
    const GraphNode& tensor = place.first->tensor;
    merged.digest = digest_of(mix_key({merged.digest, digest_of(name)}), tensor.type,
                              tensor.reduction, tensor.shape);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Place* a, const Place* b) { return a->positions < b->positions; });
  for (const Place* place : order) merged.graph.add(place->first->tensor);
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    add_glimpses(merged.graph, rank, by_rank[rank]);
  }
  return merged;
}

}  // namespace forebay
