#include "read/read_setup.hpp"

#include <algorithm>

#include "comm/node_groups.hpp"
#include "core/log.hpp"
#include "core/memory_limit.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kLargestDefaultStage = std::uint64_t{5} << 29;  // 2.5 GiB

std::uint64_t default_stage_bytes() {
  return std::min(memory_limit().limit_bytes / 8, kLargestDefaultStage);
}

/// Asked before MPI or the system is: what they do with absurd sizes differs, some hang.
void check_stage_bytes(std::uint64_t wanted) {
  const MemoryLimit limit = memory_limit();
  if (wanted <= limit.limit_bytes) return;
  throw Error(ErrorKind::usage,
              fmt::format("a stage of {} bytes exceeds the memory of this node: {} bytes ({})",
                          wanted, limit.limit_bytes, limit.source),
              "lower --stage-bytes");
}

void choose_baseline(const LoaderOptions& options, ReadSetup& setup) {
  if (options.engine == ReadEngine::pread) {
    throw Error(ErrorKind::usage, "strategy lmdb reads through liblmdb, which maps the file",
                "use --strategy lmm with --engine pread");
  }
  setup.alone = true;
  setup.engine = SourceEngine::liblmdb;
  setup.why = "every rank reads through liblmdb for itself (baseline)";
}

void choose_localized(const LoaderOptions& options, int node_ranks, ReadSetup& setup) {
  setup.roots = root_count(node_ranks, options.roots);
  setup.engine = options.engine == ReadEngine::pread ? SourceEngine::pread : SourceEngine::mmap;
  setup.may_use_pread = options.engine == ReadEngine::automatic;
  setup.why = fmt::format("{} of {} ranks on this node reads for all", setup.roots, node_ranks);
}

}  // namespace

ReadSetup choose_setup(const LoaderOptions& options, int node_ranks) {
  ReadSetup setup;
  check_stage_bytes(options.stage_bytes);
  setup.stage_bytes = options.stage_bytes > 0 ? options.stage_bytes : default_stage_bytes();
  if (options.strategy == Strategy::lmdb) {
    choose_baseline(options, setup);
    setup.stage_bytes /= static_cast<std::uint64_t>(node_ranks);  // one stage a rank
  } else {
    choose_localized(options, node_ranks, setup);
  }
  return setup;
}

std::unique_ptr<RecordSource> open_for(ReadSetup& setup, const std::string& path) {
  try {
    return open_records(path, setup.engine);
  } catch (const Error& error) {
    const bool refused = error.kind() == ErrorKind::unsupported;
    if (!refused || !setup.may_use_pread || setup.engine != SourceEngine::mmap) throw;
    // The same open by pread decides whether it was the mapping or the data set that is refused.
    auto source = open_records(path, SourceEngine::pread);
    log(LogLevel::warning, "reading by pread: {}", error.what());
    setup.engine = SourceEngine::pread;
    return source;
  }
}

std::string_view to_string(SourceEngine engine) {
  switch (engine) {
    case SourceEngine::liblmdb:
      return "liblmdb";
    case SourceEngine::mmap:
      return "mmap";
    case SourceEngine::pread:
      return "pread";
  }
  return "?";
}

}  // namespace forebay
