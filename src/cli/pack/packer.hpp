// The loop of `forebay pack`: records of a source, numbered, into a new LMDB data set.
#pragma once

#include <cstdint>
#include <string>

#include "cli/pack/source.hpp"

namespace forebay::pack {

struct Summary {
  std::string destination;
  std::uint64_t records = 0;
  std::uint64_t resumed_from = 0;  ///< records that an earlier run had packed
  std::uint64_t value_bytes = 0;   ///< of the records that this run packed
  std::uint64_t file_bytes = 0;
  std::string sidecar = "none";  ///< form of the sidecar, or why there is none
  double seconds = 0;
};

/// Packs as asked. Throws usage, not_found, corrupt, io; cancelled after Ctrl-C. After any error
/// what was committed waits in DEST.partial for --resume.
Summary pack(const Options& options);

/// "00000042", or "00000042_cats/a.jpg": digits enough for `count` records and at least eight, as
/// in Caffe's tools, so that the order of the keys is the order of the numbers. A name that is too
/// long for a key loses its beginning.
std::string record_key(std::uint64_t index, std::uint64_t count, const std::string& name);

}  // namespace forebay::pack
