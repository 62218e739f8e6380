// What ranks tell each other when they negotiate, and what they come to.
//
//   rank -> coordinator   what it newly has: signatures, and for how long it has had them
//   coordinator -> ranks  what all of them do now, in this order
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sync/request.hpp"

namespace forebay {

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

std::vector<std::byte> encode(std::span<const AskedOperation> asked);
std::vector<std::byte> encode(std::span<const AgreedOperation> agreed);
/// Throw communication for messages that no encode() has made.
std::vector<AskedOperation> decode_asked(std::span<const std::byte> message);
std::vector<AgreedOperation> decode_agreed(std::span<const std::byte> message);

/// The request that this rank has for an operation; null where it has none.
using RequestOf = std::function<std::shared_ptr<Request>(const std::string& name)>;

/// The transfers of operations that can be done, in an order that follows from the operations
/// alone. Allreduces of one type and reduction share a transfer of up to `fusion_bytes`; with 0
/// each has its own.
std::vector<Transfer> fuse(std::span<const AgreedOperation> agreed, std::uint64_t fusion_bytes,
                           const RequestOf& request_of);

}  // namespace forebay
