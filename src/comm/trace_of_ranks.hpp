// One timeline for all ranks of a job.
#pragma once

#include <string>

#include "forebay/communicator.hpp"
#include "forebay/trace.hpp"

namespace forebay {

/// Rank 0 writes the events of all ranks to `path`. Collective; throws io, on all ranks.
void write_trace_of_ranks(Communicator& comm, const Trace& trace, const std::string& path);

}  // namespace forebay
