#include "cli/pack/source.hpp"

#include <fmt/format.h>

#include "forebay/error.hpp"

namespace forebay::pack {

std::unique_ptr<Source> open_source(const Options& options) {
  switch (options.from) {
    case Origin::idx:
      return open_idx_source(options);
    case Origin::cifar10:
      return open_cifar10_source(options);
    case Origin::folder:
      return open_folder_source(options);
    case Origin::raw:
      return open_raw_source(options);
    case Origin::synthetic:
      return open_synthetic_source(options);
  }
  throw Error(ErrorKind::usage, "no such kind of source");
}

}  // namespace forebay::pack
