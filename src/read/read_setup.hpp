// From strategy names to what is actually done: which engine, who reads, with how much memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "forebay/options.hpp"
#include "format/record_source.hpp"

namespace forebay {

struct ReadSetup {
  bool alone = false;  ///< every rank reads for itself, with a stage of its own
  int roots = 1;       ///< reading ranks among those that share a stage
  SourceEngine engine = SourceEngine::mmap;
  bool may_use_pread = false;  ///< where the file system refuses to map
  std::uint64_t stage_bytes = 0;
  std::string why;  ///< for explain()
};

/// Pure but for the memory limit of the machine. `node_ranks`: ranks on this node.
/// Throws usage when strategy and engine do not go together.
ReadSetup choose_setup(const LoaderOptions& options, int node_ranks);

/// Opens the data set as `setup` says. When mmap is refused and may be replaced, the engine in
/// `setup` changes to pread, with a warning in the log.
std::unique_ptr<RecordSource> open_for(ReadSetup& setup, const std::string& path);

std::string_view to_string(SourceEngine engine);

}  // namespace forebay
