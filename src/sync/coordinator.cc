#include "sync/coordinator.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

namespace forebay {
namespace {

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

namespace {

std::string text_of(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

Coordinator::Coordinator(int ranks, std::chrono::milliseconds stall_warning,
                         std::chrono::milliseconds stall_limit)
    : ranks_(ranks),
      stall_warning_(stall_warning),
      stall_limit_(stall_limit),
      joined_(static_cast<std::size_t>(ranks), 0),
      closed_(static_cast<std::size_t>(ranks), 0) {}

void Coordinator::take(int rank, const std::vector<AskedOperation>& asked, std::int64_t now_ns) {
  const auto at = static_cast<std::size_t>(rank);
  bool joins = false;
  for (const auto& [signature, waited_ns] : asked) {
    if (signature.operation == SyncOperation::join) {
      joins = true;
      continue;
    }
    if (signature.operation == SyncOperation::close) {
      closed_[at] = 1;
      continue;
    }
    auto& row = rows_[signature.tensor.name];
    const std::int64_t since_ns = now_ns - waited_ns;
    row.first_ns = row.asked == 0 ? since_ns : std::min(row.first_ns, since_ns);
    row.by_rank.resize(static_cast<std::size_t>(ranks_));
    row.asked += row.by_rank[at] ? 0 : 1;
    row.by_rank[at] = signature;
    look_at(signature.tensor.name, row, now_ns);
  }
  if (closed_[at] != 0) look_at_all(now_ns);
  if (!joins || joined_[at] != 0) return;
  joined_[at] = 1;
  ++joined_count_;
  look_at_all(now_ns);
}

void Coordinator::look_at_all(std::int64_t now_ns) {
  std::vector<std::string> names;  // in an order that does not depend on the table's
  for (const auto& [name, row] : rows_) names.push_back(name);
  std::ranges::sort(names);
  for (const auto& name : names) look_at(name, rows_[name], now_ns);
}

bool Coordinator::is_complete(const Row& row) const {
  if (row.asked == ranks_) return true;
  for (std::size_t rank = 0; rank < joined_.size(); ++rank) {
    if (!row.by_rank[rank] && joined_[rank] == 0) return false;
  }
  return true;
}

void Coordinator::refuse_if_hopeless(const std::string& name, const Row& row) const {
  if (name.starts_with("forebay:")) return;  // the engine's own: also those come who have closed
  for (std::size_t rank = 0; rank < closed_.size(); ++rank) {
    if (closed_[rank] == 0 || joined_[rank] != 0 || row.by_rank[rank]) continue;
    throw Error(
        ErrorKind::communication,
        fmt::format("this rank has closed its synchronization, and tensor '{}' waits for it", name),
        "close on all ranks after the same step; ranks with fewer steps call join()",
        {.rank = static_cast<int>(rank)});
  }
}

void Coordinator::look_at(const std::string& name, Row& row, std::int64_t now_ns) {
  if (row.complete) return;
  if (!is_complete(row)) return refuse_if_hopeless(name, row);
  row.complete = true;
  skew_ns_ += now_ns - row.first_ns;
  complete_.push_back(name);
}

std::vector<AgreedOperation> Coordinator::answer() {
  std::vector<AgreedOperation> agreed;
  for (const auto& name : std::exchange(complete_, {})) {
    const auto row = rows_.extract(name);
    agreed.push_back(agree(row.mapped()));
  }
  if (joined_count_ == ranks_) {
    agreed.emplace_back().signature.operation = SyncOperation::join;
    std::ranges::fill(joined_, 0);
    joined_count_ = 0;
  }
  return agreed;
}

AgreedOperation Coordinator::agree(const Row& row) const {
  const auto& first = **std::ranges::find_if(row.by_rank, [](const auto& one) { return !!one; });
  AgreedOperation agreed{.signature = first};
  if (const std::string fault = fault_of(row, first); !fault.empty()) {
    agreed.error = serialize(Error(ErrorKind::usage, fault,
                                   "name, type, shape and operation must be equal on all ranks"));
    return agreed;
  }
  if (first.operation != SyncOperation::allgather) return agreed;
  for (const auto& one : row.by_rank) agreed.rows.push_back(one ? one->tensor.shape.front() : 0);
  return agreed;
}

std::string Coordinator::fault_of(const Row& row, const Signature& first) const {
  for (const auto& one : row.by_rank) {
    if (one && !(*one == first)) return differences(row);
  }
  const auto root = static_cast<std::size_t>(first.root);
  if (first.operation == SyncOperation::broadcast && !row.by_rank[root]) {
    return fmt::format("tensor '{}': {}, which has joined and sends nothing", first.tensor.name,
                       describe(first));
  }
  return "";
}

std::string Coordinator::differences(const Row& row) const {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  std::string name;
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto& one = row.by_rank[static_cast<std::size_t>(rank)];
    if (!one) continue;
    name = one->tensor.name;
    const std::string what = describe(*one);
    auto group = std::ranges::find(groups, what, [](const auto& pair) { return pair.first; });
    if (group == groups.end()) group = groups.insert(groups.end(), {what, {}});
    group->second.push_back(rank);
  }
  std::string text = fmt::format("tensor '{}' is not the same on all ranks:", name);
  for (const auto& [what, ranks] : groups) {
    text += fmt::format("{} {} on {}", text.back() == ':' ? "" : ",", what, text_of(ranks));
  }
  return text;
}

std::string Coordinator::missing(const Row& row) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (!row.by_rank[at] && joined_[at] == 0) ranks.push_back(rank);
  }
  return text_of(ranks);
}

std::optional<std::string> Coordinator::look_for_stalls(std::int64_t now_ns) {
  constexpr std::size_t kMostNamed = 5;
  std::vector<std::string> told;
  for (auto& [name, row] : rows_) {
    const std::int64_t waited_ns = now_ns - row.first_ns;
    const std::string what = fmt::format("tensor '{}' has waited {:.1f} s for {}", name,
                                         seconds(waited_ns), missing(row));
    if (stall_limit_.count() > 0 && waited_ns >= stall_limit_.count()) {
      throw Error(ErrorKind::communication, what,
                  "start the same tensors on all ranks; ranks with fewer steps call join()");
    }
    if (row.warned || waited_ns < stall_warning_.count()) continue;
    row.warned = true;
    ++stalls_;
    told.push_back(what);
  }
  if (told.empty()) return std::nullopt;
  std::ranges::sort(told);
  const std::size_t more = told.size() > kMostNamed ? told.size() - kMostNamed : 0;
  told.resize(told.size() - more);
  return fmt::format("{}{}", fmt::join(told, "; "),
                     more > 0 ? fmt::format("; and {} more", more) : "");
}

void Coordinator::clear() {
  rows_.clear();
  complete_.clear();
  std::ranges::fill(joined_, 0);
  std::ranges::fill(closed_, 0);
  joined_count_ = 0;
}

}  // namespace forebay
