#include "read/root_peers.hpp"

namespace forebay {

PeerMemory RootPeers::share(std::uint64_t bytes) {
  const std::shared_ptr<SharedMemory> memory = of_node_->share(bytes, SharedMemoryKind::posix);
  return {.bytes = memory->bytes(),
          .reserve = [memory = memory.get()](std::size_t offset,
                                             std::size_t size) { memory->reserve(offset, size); },
          .owner = memory};
}

}  // namespace forebay
