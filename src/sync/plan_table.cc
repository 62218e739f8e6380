#include "sync/plan_table.hpp"

#include <map>
#include <utility>

#include "comm/messages.hpp"
#include "core/mix.hpp"
#include "sync/text_digest.hpp"

namespace forebay {

PlanTable::PlanTable(TransferPlan plan) : plan_(std::move(plan)) {
  std::map<std::string_view, const PlannedTensor*> by_name;
  for (std::uint32_t buffer = 0; buffer < plan_.buffers.size(); ++buffer) {
    for (std::uint32_t slot = 0; slot < plan_.buffers[buffer].size(); ++slot) {
      const PlannedTensor& tensor = plan_.buffers[buffer][slot];
      places_.emplace(tensor.name, Place{buffer, slot});
      by_name.emplace(tensor.name, &tensor);
    }
  }
  for (const auto& [name, tensor] : by_name) {
    digest_ = digest_of(mix_key({digest_, digest_of(name)}), tensor->type, tensor->reduction,
                        tensor->shape);
  }
}

std::optional<PlanTable::Place> PlanTable::find(const Request& request) const {
  if (request.operation != SyncOperation::allreduce) return {};
  const auto found = places_.find(request.tensor.name);
  if (found == places_.end()) return {};
  const PlannedTensor& tensor = plan_.buffers[found->second.buffer][found->second.slot];
  const bool same = tensor.type == request.tensor.type && tensor.reduction == request.reduction &&
                    tensor.shape == request.tensor.shape;
  return same ? std::optional(found->second) : std::nullopt;
}

std::vector<std::byte> encode(const TransferPlan& plan) {
  MessageWriter writer;
  writer.number(plan.digest);
  writer.number(std::uint64_t{plan.buffers.size()});
  for (const auto& buffer : plan.buffers) {
    writer.number(std::uint64_t{buffer.size()});
    for (const PlannedTensor& tensor : buffer) {
      writer.text(tensor.name);
      writer.number(tensor.type);
      writer.number(tensor.reduction);
      writer.numbers(tensor.shape);
      writer.number(tensor.depth);
    }
  }
  return writer.take();
}

TransferPlan decode_plan(std::span<const std::byte> message) {
  MessageReader reader(message);
  TransferPlan plan;
  plan.digest = reader.number<std::uint64_t>();
  for (auto buffers = reader.number<std::uint64_t>(); buffers > 0; --buffers) {
    auto& buffer = plan.buffers.emplace_back();
    for (auto tensors = reader.number<std::uint64_t>(); tensors > 0; --tensors) {
      PlannedTensor& tensor = buffer.emplace_back();
      tensor.name = reader.text();
      tensor.type = reader.number<TensorType>();
      tensor.reduction = reader.number<Reduction>();
      tensor.shape = reader.numbers();
      tensor.depth = reader.number<std::uint32_t>();
    }
  }
  return plan;
}

}  // namespace forebay
