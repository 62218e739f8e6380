#include "sync/agreed_operation.hpp"

#include <map>
#include <utility>

#include "comm/messages.hpp"

namespace forebay {
namespace {

void write(MessageWriter& to, const Signature& signature) {
  to.number(signature.operation);
  to.text(signature.tensor.name);
  to.number(signature.tensor.type);
  to.numbers(signature.tensor.shape);
  to.number(signature.reduction);
  to.number(std::int32_t{signature.root});
}

Signature read_signature(MessageReader& from) {
  Signature signature;
  signature.operation = from.number<SyncOperation>();
  signature.tensor.name = from.text();
  signature.tensor.type = from.number<TensorType>();
  signature.tensor.shape = from.numbers();
  signature.reduction = from.number<Reduction>();
  signature.root = from.number<std::int32_t>();
  return signature;
}

Transfer transfer_of(const AgreedOperation& agreed, std::shared_ptr<Request> request) {
  const auto& [operation, tensor, reduction, root] = agreed.signature;
  Transfer transfer{.operation = operation,
                    .type = tensor.type,
                    .reduction = reduction,
                    .root = root,
                    .rows = agreed.rows};
  if (operation == SyncOperation::allgather) {
    TensorSpec row = tensor;
    row.shape.front() = 1;
    transfer.bytes_of_row = row.bytes();
  }
  const std::uint64_t elements = operation == SyncOperation::barrier ? 0 : tensor.elements();
  transfer.parts.push_back({std::move(request), elements});
  return transfer;
}

}  // namespace

std::vector<std::byte> encode(std::span<const AskedOperation> asked) {
  MessageWriter message;
  for (const auto& one : asked) {
    write(message, one.signature);
    message.number(one.waited_ns);
  }
  return message.take();
}

std::vector<std::byte> encode(std::span<const AgreedOperation> agreed) {
  MessageWriter message;
  for (const auto& one : agreed) {
    write(message, one.signature);
    message.numbers(one.rows);
    message.text(one.error);
  }
  return message.take();
}

std::vector<AskedOperation> decode_asked(std::span<const std::byte> message) {
  std::vector<AskedOperation> asked;
  for (MessageReader from(message); !from.empty();) {
    asked.emplace_back().signature = read_signature(from);
    asked.back().waited_ns = from.number<std::int64_t>();
  }
  return asked;
}

std::vector<AgreedOperation> decode_agreed(std::span<const std::byte> message) {
  std::vector<AgreedOperation> agreed;
  for (MessageReader from(message); !from.empty();) {
    agreed.emplace_back().signature = read_signature(from);
    agreed.back().rows = from.numbers();
    agreed.back().error = from.text();
  }
  return agreed;
}

std::vector<Transfer> fuse(std::span<const AgreedOperation> agreed, std::uint64_t fusion_bytes,
                           const RequestOf& request_of) {
  struct Open {
    std::size_t transfer;
    std::uint64_t bytes;
  };
  std::vector<Transfer> transfers;
  std::map<std::pair<TensorType, Reduction>, Open> open;
  for (const AgreedOperation& one : agreed) {
    const auto& [operation, tensor, reduction, root] = one.signature;
    auto request = request_of(tensor.name);
    if (operation != SyncOperation::allreduce) {
      transfers.push_back(transfer_of(one, std::move(request)));
      continue;
    }
    const std::uint64_t bytes = tensor.bytes();
    const auto [found, is_new] = open.try_emplace({tensor.type, reduction}, Open{});
    Open& last = found->second;
    if (!is_new && last.bytes <= fusion_bytes && bytes <= fusion_bytes - last.bytes) {
      transfers[last.transfer].parts.push_back({std::move(request), tensor.elements()});
      last.bytes += bytes;
    } else {
      transfers.push_back(transfer_of(one, std::move(request)));
      last = {transfers.size() - 1, bytes};
    }
  }
  return transfers;
}

}  // namespace forebay
