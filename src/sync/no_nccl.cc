// What stands in for NCCL where Forebay is built without it.
#ifndef FOREBAY_NCCL

#include "forebay/error.hpp"
#include "sync/accelerator.hpp"

namespace forebay {

std::shared_ptr<Accelerator> open_nccl(Communicator& /*comm*/, int /*device*/) {
  throw Error(
      ErrorKind::unsupported, "Forebay was built without NCCL",
      "choose another algorithm for sums, or build it again with FOREBAY_NCCL=ON where CUDA "
      "and NCCL are installed");
}

}  // namespace forebay

#endif
