// Checks of SyncOptions, and their text form.
#pragma once

#include <cstdint>
#include <string>

#include "forebay/communicator.hpp"
#include "forebay/sync.hpp"

namespace forebay {

/// Where none is given: Horovod's.
inline constexpr std::uint64_t kUsualFusion = std::uint64_t{64} << 20;

/// Throws usage, on all ranks, for what makes no sense or differs between ranks. Collective.
void check_options(Communicator& comm, const SyncOptions& options);

std::string_view to_string(WireFormat wire);
std::string_view to_string(SyncAlgorithm algorithm);

}  // namespace forebay
