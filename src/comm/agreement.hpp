// Ranks that were started with different settings would wait for each other, or deliver samples of
// different orders, without anybody noticing. They compare what must be equal before they begin.
#pragma once

#include <string>

#include "forebay/communicator.hpp"

namespace forebay {

/// Throws usage on all ranks when the text of any rank differs from that of rank 0; `what` names
/// what the text says, for the message. Collective.
void require_agreement(Communicator& comm, const std::string& text, const std::string& what);

/// Whether `holds` on all ranks. Collective.
bool everywhere(Communicator& comm, bool holds);

}  // namespace forebay
