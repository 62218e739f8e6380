// The table of rank 0: which ranks have asked for what (paper 002, 6.2.2).
//
//   name    rank 0  rank 1  rank 2
//   conv1     x       x       x      -> complete: the next answer has it, checked
//   fc        x       -       x      waits; a rank that has joined counts as one that has asked
//
// A tensor for which ranks have asked in different ways is answered with an error that names both.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/messages.hpp"
#include "sync/request.hpp"

namespace forebay {

// What ranks tell each other when they negotiate, and what they come to.
//
//   rank -> coordinator   what it newly has: signatures, and for how long it has had them
//   coordinator -> ranks  what all of them do now, in this order

/// One entry of a rank's message to the coordinator.
struct AskedOperation {
  Signature signature = {};
  std::int64_t waited_ns = 0;
};

/// One entry of the coordinator's answer. With an error, the tensor fails on all ranks; `join` says
/// that all ranks have joined.
struct AgreedOperation {
  Signature signature = {};
  std::vector<std::uint64_t> rows =
      {};                  ///< allgather: first extents by rank; none for joined ranks
  std::string error = {};  ///< serialized; empty: it can be done
};

auto sent(Is<Signature> auto& one) {
  return std::tie(one.operation, one.tensor.name, one.tensor.type, one.tensor.shape, one.reduction,
                  one.root);
}
auto sent(Is<AskedOperation> auto& one) { return std::tie(one.signature, one.waited_ns); }
auto sent(Is<AgreedOperation> auto& one) { return std::tie(one.signature, one.rows, one.error); }

/// The request that this rank has for an operation; null where it has none.
using RequestOf = std::function<std::shared_ptr<Request>(const std::string& name)>;

/// The transfers of operations that can be done, in an order that follows from the operations
/// alone. Allreduces of one type and reduction share a transfer of up to `fusion_bytes`; with 0
/// each has its own.
std::vector<Transfer> fuse(std::span<const AgreedOperation> agreed, std::uint64_t fusion_bytes,
                           const RequestOf& request_of);

/// Of one thread. Times are nanoseconds of the steady clock.
class Coordinator {
 public:
  Coordinator(int ranks, std::chrono::milliseconds stall_warning,
              std::chrono::milliseconds stall_limit);

  void take(int rank, const std::vector<AskedOperation>& asked, std::int64_t now_ns);
  /// What has become complete since the last call, in the order in which it has; an operation
  /// `join` at the end says that all ranks have joined, and that nobody has from now on.
  std::vector<AgreedOperation> answer();

  /// One line on what has waited for longer than the warning and was not told of before. Throws
  /// communication for what has waited for longer than the limit.
  std::optional<std::string> look_for_stalls(std::int64_t now_ns);
  /// Reported so far.
  std::uint64_t stalls() const { return stalls_; }
  /// Between a tensor's first and its last rank, all in all.
  double skew_seconds() const { return static_cast<double>(skew_ns_) * 1e-9; }

  /// Forgets what was asked for, and who has joined or closed.
  void clear();

 private:
  struct Row {
    std::vector<std::optional<Signature>> by_rank;
    int asked = 0;
    std::int64_t first_ns = 0;
    bool complete = false;
    bool warned = false;
  };

  void look_at(const std::string& name, Row& row, std::int64_t now_ns);
  void look_at_all(std::int64_t now_ns);
  /// Throws communication where a rank that has closed is missing.
  void refuse_if_hopeless(const std::string& name, const Row& row) const;
  AgreedOperation agree(const Row& row) const;
  std::string fault_of(const Row& row, const Signature& first) const;
  std::string differences(const Row& row) const;
  std::string missing(const Row& row) const;
  bool is_complete(const Row& row) const;

  int ranks_;
  std::chrono::nanoseconds stall_warning_;
  std::chrono::nanoseconds stall_limit_;
  std::vector<char> joined_;
  std::vector<char> closed_;
  int joined_count_ = 0;
  std::unordered_map<std::string, Row> rows_;
  std::vector<std::string> complete_;  ///< names, in the order of completion
  std::uint64_t stalls_ = 0;
  std::int64_t skew_ns_ = 0;
};

}  // namespace forebay
