#include "cli/pack/source.hpp"

#include <filesystem>

#include "forebay/error.hpp"
#include "program/output.hpp"

namespace forebay::pack {
namespace {

std::unique_ptr<Source> open_kind(const Options& options) {
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

}  // namespace

std::unique_ptr<Source> open_source(const Options& options) {
  try {
    return open_kind(options);
  } catch (const std::filesystem::filesystem_error& error) {
    throw Error(ErrorKind::io, error.code().message(), "check the path and its permissions",
                at_file(error.path1().string()));
  }
}

}  // namespace forebay::pack
