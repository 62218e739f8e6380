// Which ranks share memory: those with the same identity here.
#pragma once

#include "comm/net/siphash.hpp"

namespace forebay::net {

/// A digest of what makes a node: the kernel that runs (its boot id), the host name, and the file
/// system for shared memory. Containers with a /dev/shm of their own are nodes of their own. Local.
Bytes16 node_identity();

}  // namespace forebay::net
