// The collective part of a Pipeline: who reads, what the data are, and the memory to put them in.
// Each step fails on all ranks together.
#include <fmt/format.h>
#include <xxhash.h>

#include "comm/agreement.hpp"
#include "comm/node_groups.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "loader/pipeline.hpp"

namespace forebay {
namespace {

/// What every rank must know of the data, from rank 0.
struct DataFacts {
  std::uint64_t entries = 0;
  std::string fingerprint;  ///< of the snapshot: all readers must see the same
  std::string identity;     ///< the fingerprint and the first record's content, for resuming
  std::string first_key;
  std::string first_value;
};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Whether a codec is told by the first value, which may be large, or by the options alone.
bool needs_first_value(const LoaderOptions& options) {
  return options.codec != "bytes" && options.codec != "raw";
}

DataFacts look_at(RecordSource& source, bool with_value) {
  DataFacts facts{.entries = source.entries(), .fingerprint = source.fingerprint().text};
  if (facts.entries == 0) {
    throw Error(ErrorKind::not_found, "the data set has no samples",
                "pack some into it, or name another", {.file = source.path()});
  }
  source.seek(0);
  source.read(1, [&](const Record& record) {
    facts.first_key = text_of(record.key);
    // Two builds of one shape have the same fingerprint; their content differs.
    facts.identity = fmt::format("{},first={:016x}", facts.fingerprint,
                                 XXH3_64bits(record.value.data(), record.value.size()));
    if (with_value) facts.first_value = text_of(record.value);
  });
  source.check_unchanged();
  return facts;
}

DataFacts share(Communicator& comm, DataFacts facts) {
  comm.broadcast(std::as_writable_bytes(std::span(&facts.entries, 1)), 0);
  facts.fingerprint = broadcast_text(comm, facts.fingerprint, 0);
  facts.identity = broadcast_text(comm, facts.identity, 0);
  facts.first_key = broadcast_text(comm, facts.first_key, 0);
  facts.first_value = broadcast_text(comm, facts.first_value, 0);
  return facts;
}

std::uint64_t start_position(const std::vector<Segment>& done) {
  std::uint64_t position = 0;
  for (const Segment& segment : done) position += segment.iterations * segment.batch;
  return position;
}

std::uint64_t end_of(const StridedOrder& order, const LoaderOptions& options) {
  if (options.epochs > 0) return order.iterations(options.epochs);
  return options.iterations > 0 ? options.iterations : UINT64_MAX;
}

/// All that decides who gets which sample when, also where a run to resume has stopped.
std::string settings_text(const LoaderOptions& options) {
  std::string text = options.to_text();
  if (options.first_iteration > 0 || !options.done.empty()) {
    text += fmt::format(",resumed at iteration {} of segment {} from position {}",
                        options.first_iteration, options.done.size(), start_position(options.done));
  }
  return text;
}

}  // namespace

Pipeline::Pipeline(Communicator& comm, const std::string& path, const LoaderOptions& options,
                   Trace* trace)
    : path_(path),
      options_(options),
      trace_(trace),
      opened_ns_(now_ns()),
      usage_at_open_(process_usage()) {
  const TraceSpan span(trace_, "open");
  connect(comm);
  open_data();
  agree_on_data();
  make_stage();
  collectively(*comm_, [&] { start(); });
  figures_.open_seconds = static_cast<double>(now_ns() - opened_ns_) * 1e-9;
}

void Pipeline::connect(Communicator& comm) {
  collectively(comm, [&] { options_.validate(comm.size()); });
  comm_ = comm.split(0, comm.rank());
  comm_->set_timeout(options_.timeout);
  require_agreement(*comm_, settings_text(options_), "the loader's options");
  const auto node = comm_->split_by_node();
  board_ = std::make_unique<FailureBoard>(comm_, node);
  collectively(*comm_, [&] { setup_ = choose_setup(options_, node->size()); });
  group_ = setup_.alone ? node->split(node->rank(), 0) : node;
  local_rank_ = group_->rank();
  group_ranks_.resize(static_cast<std::size_t>(group_->size()));
  const int mine = comm_->rank();
  group_->all_gather(std::as_bytes(std::span(&mine, 1)),
                     std::as_writable_bytes(std::span(group_ranks_)));
  root_ = root_of_rank(local_rank_, setup_.roots, group_->size());
}

void Pipeline::open_data() {
  collectively(*comm_, [&] {
    if (root_ >= 0) source_ = open_for(setup_, path_);
  });
}

void Pipeline::agree_on_data() {
  DataFacts facts;
  collectively(*comm_, [&] {
    if (comm_->rank() == 0) facts = look_at(*source_, needs_first_value(options_));
  });
  facts = share(*comm_, std::move(facts));
  identity_ = facts.identity;
  collectively(*comm_, [&] {
    require_same_data(facts.fingerprint);
    try {
      codec_ = make_codec({options_.codec, options_.schema},
                          std::as_bytes(std::span(facts.first_value)));
    } catch (const Error& error) {
      throw error.within({.file = path_, .sample = 0, .key = printable_key(facts.first_key)});
    }
    const StridedOrder order(facts.entries, comm_->size(), options_.batch, options_.coalesce,
                             start_position(options_.done));
    plan_.emplace(order, group_ranks_, setup_.roots);
    end_ = end_of(order, options_);
  });
}

void Pipeline::require_same_data(const std::string& fingerprint) const {
  if (source_ && source_->fingerprint().text != fingerprint) {
    throw Error(ErrorKind::changed, "data set changed while open: ranks see different content",
                "wait until its writer is done, and check that all nodes see the same file",
                {.file = path_});
  }
  if (!options_.fingerprint.empty() && options_.fingerprint != identity_) {
    throw Error(ErrorKind::changed, "this is not the data set that the run to resume has used",
                "name that one, or start anew without the saved state", {.file = path_});
  }
}

void Pipeline::make_stage() {
  const StageShape shape{.ranks = group_->size(),
                         .roots = setup_.roots,
                         .buffers = options_.buffers,
                         .coalesce = options_.coalesce,
                         .entries = plan_->entries(),
                         .data_bytes = setup_.stage_bytes};
  iteration_ = options_.first_iteration;
  collectively(*comm_, [&] {
    stage_ = std::make_unique<Stage>(*group_, shape, options_.stage, iteration_);
  });
}

void Pipeline::start() {
  if (board_->several_nodes() && comm_->concurrent()) {
    progress_ = std::make_unique<ProgressThread>();
    notices_ = progress_->add([this] {
      board_->poll();
      return false;
    });
  } else if (board_->several_nodes() && comm_->rank() == 0) {
    log(LogLevel::warning,
        "MPI grants less than MPI_THREAD_MULTIPLE: a failure on another node is noticed only "
        "while a rank waits for data");
  }
  if (root_ < 0) return;
  reader_ = HelperThread("fb-read", Placement{},
                         [this](const std::stop_token& stop) { run_reader(stop); });
}

}  // namespace forebay
