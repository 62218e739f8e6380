// A way to synchronize that Forebay does not have, made of nothing but its public headers.
#pragma once

#include "forebay/sync.hpp"

namespace toy {

/// `leader`: everything is summed in the order in which rank 0 comes to it.
forebay::SyncWay leader_way();

}  // namespace toy
