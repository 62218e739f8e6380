#include "read/read_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/node_groups.hpp"
#include "core/memory_limit.hpp"
#include "forebay/error.hpp"
#include "order/order_cost.hpp"
#include "read/strategy_table.hpp"

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

void require_baseline_knobs(const LoaderOptions& options) {
  const bool other_engine =
      options.engine != ReadEngine::automatic && options.engine != ReadEngine::mmap;
  if (other_engine) {
    throw Error(ErrorKind::usage, "strategy lmdb reads through liblmdb, which maps the file",
                fmt::format("use --strategy lmm with --engine {}", to_string(options.engine)));
  }
  if (options.locate != Locate::automatic && options.locate != Locate::seek) {
    throw Error(ErrorKind::usage, "strategy lmdb finds records by skipping, with liblmdb",
                fmt::format("use --strategy lmm with --locate {}", to_string(options.locate)));
  }
}

// Where samples are is known since open: there is nothing to locate, and nobody to walk.
void require_sample_knobs(const LoaderOptions& options) {
  if (options.locate != Locate::automatic) {
    throw Error(ErrorKind::usage,
                fmt::format("locate {} is for LMDB: where the samples of these files are is known",
                            to_string(options.locate)),
                "leave --locate out");
  }
  if (strategy_row(options.strategy).walks()) {
    throw Error(ErrorKind::usage,
                fmt::format("strategy {} walks the tree of an LMDB database, and these files have "
                            "none",
                            to_string(options.strategy)),
                "use --strategy auto or one of those from lmm-dio on");
  }
}

/// Samples of random places: their neighbours in the file are not wanted, so larger gaps would only
/// be more to read; pages that serve a million records are kept. Held data are read once, in order.
void choose_places(ReadSetup& setup, const LoaderOptions& options) {
  constexpr std::uint64_t kLargestRandomGap = 4096;
  constexpr std::uint64_t kKeptBytes = std::uint64_t{32} << 20;
  setup.scattered = options.hold == Hold::storage && is_scattered(options);
  setup.gap_bytes =
      setup.scattered ? std::min(options.gap_bytes, kLargestRandomGap) : options.gap_bytes;
  setup.keep_bytes = setup.scattered ? kKeptBytes : 0;
}

[[noreturn]] void refuse_mpiio(const std::string& happened, const std::string& remedy) {
  throw Error(ErrorKind::usage, happened, remedy);
}

bool reads_alone(int roots, ReadAlone alone) {
  if (roots == kEveryRank || alone == ReadAlone::always) return true;
  return alone == ReadAlone::unless_roots && roots == 0;
}

/// Behind all else that shapes `setup`.
void choose_mpiio(ReadSetup& setup, const LoaderOptions& options, bool located) {
  if (setup.engine != ReadEngine::mpiio) return;
  if (!setup.reads_extents()) {
    refuse_mpiio(fmt::format("engine mpiio reads extents, and locate {} finds none",
                             to_string(setup.locate)),
                 "use --locate scan or provenance, or a strategy from lmm-dio on");
  }
  const bool wanted = options.mpiio == MpiioMode::collective;
  const bool common_steps = !setup.alone && options.order == OrderName::strided;
  if (wanted && !common_steps) {
    refuse_mpiio("reading together needs the strided order, and roots",
                 "use --mpiio independent, or --order strided");
  }
  if (wanted && !located) {
    refuse_mpiio("files with fields are not read together", "use --mpiio independent");
  }
  setup.collective = wanted || (options.mpiio == MpiioMode::automatic && common_steps && located);
  if (asks_for_turns(options) && setup.collective) {
    refuse_mpiio("roots that read together take no turns",
                 "use --mpiio independent, or no --stagger");
  }
  if (setup.collective) setup.stagger = kNoStagger;
}

}  // namespace

ReadSetup choose_setup(const LoaderOptions& options, int node_ranks, bool located,
                       ReadAlone alone) {
  check_stage_bytes(options.stage_bytes);
  if (!located) require_sample_knobs(options);
  const StrategyRow& defaults = strategy_row(options.strategy);
  ReadSetup setup;
  setup.baseline = defaults.baseline;
  if (setup.baseline) require_baseline_knobs(options);
  setup.locate = options.locate == Locate::automatic ? defaults.locate : options.locate;
  if (!located) setup.locate = Locate::automatic;
  setup.how_walked = options.locate == Locate::automatic
                         ? fmt::format("strategy {}", to_string(options.strategy))
                         : fmt::format("locate {}", to_string(options.locate));
  setup.may_replace_engine = options.engine == ReadEngine::automatic && !setup.baseline;
  setup.engine = setup.may_replace_engine ? defaults.engine : options.engine;
  // Walking has no use for many reads in flight: mapped pages are the nearest to what was meant.
  const bool walks = !setup.reads_extents();
  if (walks && setup.engine == ReadEngine::automatic) setup.engine = ReadEngine::mmap;
  choose_places(setup, options);
  setup.coalesces = defaults.coalesce;
  setup.stagger = options.stagger == kStaggerByStrategy ? defaults.stagger : options.stagger;
  setup.stage_bytes = options.stage_bytes > 0 ? options.stage_bytes : default_stage_bytes();
  setup.alone = setup.baseline || reads_alone(options.roots, alone);
  if (setup.alone) {
    setup.stage_bytes /= static_cast<std::uint64_t>(node_ranks);  // one stage a rank
    setup.stagger = kNoStagger;  // ranks may read different numbers of buffers
  } else {
    setup.roots = root_count(node_ranks, options.roots);
  }
  if (setup.alone || options.order != OrderName::strided) setup.locate_alone();
  choose_mpiio(setup, options, located);
  return setup;
}

void consider_sizes(ReadSetup& setup, std::uint64_t samples, std::uint64_t bytes) {
  constexpr std::uint64_t kSmall = std::uint64_t{64} << 10;
  setup.small = samples > 0 && bytes / samples < kSmall;
}

Engine storage_engine(ReadSetup& setup, const File& file) {
  if (setup.engine == ReadEngine::mmap) return Engine::mmap;
  if (setup.engine == ReadEngine::pread) return Engine::pread;
  if (setup.engine == ReadEngine::mpiio) return Engine::pread;  // until MPI has opened the file
  if (setup.engine == ReadEngine::uring) return Engine::uring;
  const EngineChoice choice = choose_engine(file, setup.needs_depth());
  setup.engine = choice.engine == Engine::uring ? ReadEngine::uring : ReadEngine::pread;
  setup.why = choice.reason;
  return choice.engine;
}

BulkOptions bulk_options(const ReadOptions& options, const ReadSetup& setup, std::stop_token stop) {
  return {.depth = options.depth,
          .request_bytes = options.request_bytes,
          .scattered = setup.needs_depth(),
          .apart = setup.apart,
          .direct = options.direct,
          .timeout = options.timeout,
          .stop = std::move(stop),
          .placement = Placement::of(setup.cores, Component::io)};
}

}  // namespace forebay
