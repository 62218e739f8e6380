// From a source to a data set that has its name, by `forebay pack`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/pack/source.hpp"

namespace forebay::pack {

/// A file that could not be packed, and why.
struct BadFile {
  std::uint64_t at = 0;  ///< records that were packed before
  std::string name;      ///< below the source
  std::string error;
  std::string remedy = {};  ///< empty: found by an earlier run
};

struct Summary {
  std::string destination;
  std::uint64_t records = 0;
  std::uint64_t resumed_from = 0;  ///< records that an earlier run had packed
  std::uint64_t value_bytes = 0;   ///< of the records that this run packed
  std::uint64_t file_bytes = 0;
  ClassNames classes;        ///< none: not known
  folder::LeftOut left_out;  ///< what was found beside records
  std::vector<std::string> notes;
  std::vector<BadFile> skipped;  ///< with OnError::skip, also by earlier runs
  std::string sidecar = "none";  ///< form of the sidecar, or why there is none
  double seconds = 0;
};

/// Packs as asked. Throws usage, not_found, corrupt, io; cancelled after Ctrl-C. After any error
/// what was committed waits in DEST.partial for --resume; where that is nothing, it leaves nothing.
/// Where files cannot be packed, the error names all of them.
Summary pack(const Options& options);

}  // namespace forebay::pack
