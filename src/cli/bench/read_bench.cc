#include "cli/bench/read_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "forebay/error.hpp"
#include "format/lmdb/database.hpp"
#include "program/output.hpp"
#include "storage/storages.hpp"

namespace forebay::bench {
namespace {

constexpr int kReaders[] = {1, 2, 4, 8, 16};
/// Plain reads of less say little.
constexpr std::uint64_t kLeastPlainBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kMostSweepBytes = std::uint64_t{1} << 30;

class ReadBench {
 public:
  ReadBench(std::shared_ptr<Communicator> comm, const ReadBenchOptions& options)
      : comm_(std::move(comm)), variants_(parse_variants(options.strategies, options.loader)) {
    results_.options = options;
    results_.layout = find_layout(*comm_);
    collectively(*comm_, [&] { look_at_data(); });
    cache_.emplace(*comm_, results_.layout, std::vector{results_.data.file}, options.cold);
  }

  ReadResults run() {
    if (options().seek_only) {
      seek();
    } else {
      try_all();
      measure();
    }
    if (options().block_sizes) sweep();
    return std::move(results_);
  }

 private:
  const ReadBenchOptions& options() const { return results_.options; }

  void look_at_data() {
    results_.data = ask_storage(options().dataset, options().loader.timeout, "open this",
                                [path = options().dataset] { return facts_of(path); });
  }

  static DataFacts facts_of(const std::string& path) {
    auto database = lmdb::Database::open(path, Engine::pread);
    DataFacts data;
    data.file = lmdb::resolve_dataset_path(path).data_file;
    data.file_bytes = open_file(data.file, Engine::pread)->size();
    data.entries = database.entries();
    if (data.entries == 0) {
      throw Error(ErrorKind::usage, "there is nothing to read", "name a data set with samples",
                  {.file = path});
    }
    const auto pages = static_cast<double>(database.tree().header().pages());
    data.stored_bytes = pages * database.page_size() / static_cast<double>(data.entries);
    return data;
  }

  /// Iterations of a run.
  std::uint64_t iterations() const {
    const LoaderOptions& loader = options().loader;
    if (loader.iterations > 0) return loader.iterations;
    return StridedOrder(results_.data.entries, comm_->size(), loader.batch)
        .iterations(loader.epochs);
  }

  /// As many bytes of the file as a run's samples take, in whole.
  std::uint64_t bytes_of_run() const {
    const double samples =
        static_cast<double>(iterations()) * static_cast<double>(options().loader.batch);
    const double bytes = samples * results_.data.stored_bytes;
    const double size = static_cast<double>(results_.data.file_bytes);
    return std::min(results_.data.file_bytes,
                    std::max(kLeastPlainBytes, static_cast<std::uint64_t>(std::min(bytes, size))));
  }

  /// Tries every variant once, aside of what is timed. Whoever asked for all strategies gets those
  /// that work here; a strategy asked for by name has to.
  void try_all() {
    Verification verification(comm_, options().dataset);
    auto progress = make_progress("verifying", variants_.size());
    std::uint64_t tried = 0;
    std::erase_if(variants_, [&](const Variant& variant) {
      const bool left_out = !fits(variant, verification);
      if (progress) progress->update(++tried);
      return left_out;
    });
    if (variants_.empty()) {
      throw Error(ErrorKind::unsupported, "no strategy can open the data set",
                  "name one with --strategies to see why", {.file = options().dataset});
    }
    for (const Variant& variant : variants_) results_.variants.push_back(variant.name);
  }

  bool fits(const Variant& variant, Verification& verification) {
    try {
      if (options().verify) {
        verify(variant, verification);
      } else {
        Loader::open(comm_, options().dataset, variant.options);
      }
      return true;
    } catch (const Error& error) {
      const bool elsewhere_too =
          error.kind() != ErrorKind::unsupported && error.kind() != ErrorKind::usage;
      if (!options().strategies.empty() || elsewhere_too) throw;
      results_.skipped.push_back({variant.name, error.what()});
      return false;
    }
  }

  void verify(const Variant& variant, Verification& verification) {
    const Verified& verified = results_.verified.emplace_back(verification.check(variant));
    if (verified.agrees()) return;
    throw Error(ErrorKind::corrupt,
                fmt::format("{} delivers other data than the baseline", variant.name),
                "this is a fault of Forebay: please report it", {.file = options().dataset});
  }

  void measure() {
    std::optional<PlainRead> plain;
    if (options().plain) {
      plain.emplace(*comm_, results_.layout, results_.data.file, bytes_of_run());
    }
    const auto repetitions = static_cast<std::uint64_t>(options().repetitions);
    auto progress = make_progress("measuring", repetitions * turns(0).size());
    for (int repetition = 0; repetition < options().repetitions; ++repetition) {
      int turn = 0;
      for (const Turn& next : turns(repetition)) {
        MeasuredRun run{.repetition = repetition, .turn = turn++};
        cache_->prepare();
        if (next.variant != nullptr) {
          run.variant = next.variant->name;
          run.strategy = run_strategy(comm_, options().dataset, *next.variant, options().compute);
        } else {
          run.plain = plain->run(next.readers);
        }
        results_.runs.push_back(std::move(run));
        if (progress) progress->update(results_.runs.size());
      }
    }
  }

  struct Turn {
    const Variant* variant = nullptr;
    int readers = 0;
  };

  std::vector<Turn> turns(int repetition) const {
    std::vector<Turn> turns;
    for (const Variant& variant : variants_) turns.push_back({.variant = &variant});
    if (options().plain) {
      for (const int readers : kReaders) turns.push_back({.readers = readers});
    }
    return in_turn(std::move(turns), options().seed, repetition);
  }

  void seek() {
    results_.seek_runs = run_seek_only(*comm_, *cache_,
                                       {.dataset = options().dataset,
                                        .batch = options().loader.batch,
                                        .iterations = iterations(),
                                        .repetitions = options().repetitions});
  }

  void sweep() {
    results_.block_runs =
        run_block_sizes(*comm_, *cache_, results_.data.file,
                        std::min(results_.data.file_bytes, kMostSweepBytes), options().seed);
  }

  std::unique_ptr<Progress> make_progress(const std::string& verb, std::uint64_t total) const {
    return comm_->rank() == 0 ? std::make_unique<Progress>(verb, total) : nullptr;
  }

  std::shared_ptr<Communicator> comm_;
  std::vector<Variant> variants_;
  std::optional<PageCache> cache_;
  ReadResults results_;
};

}  // namespace

ReadResults run_read_bench(const std::shared_ptr<Communicator>& comm,
                           const ReadBenchOptions& options) {
  return ReadBench(comm, options).run();
}

}  // namespace forebay::bench
