// The collective part of a Pipeline: who reads, what the data are, and the memory to put them in.
// Each step fails on all ranks together.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "comm/node_groups.hpp"
#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "format/codec/codecs.hpp"
#include "loader/draw_pipeline.hpp"
#include "loader/first_values.hpp"
#include "loader/shared_pipeline.hpp"
#include "loader/strided_pipeline.hpp"
#include "read/open_access.hpp"
#include "read/root_peers.hpp"
#include "storage/storages.hpp"
#include "storage/url.hpp"

namespace forebay {
namespace {

/// What all ranks tell each other of where they are.
struct RankPlace {
  int leader = 0;   ///< the global rank of its group's rank 0
  int roots = 1;    ///< of its group
  int domain = -1;  ///< its NUMA node, where that matters
};

/// Where `value` stands in `values`, -1 if nowhere.
int place_in(const std::vector<int>& values, int value) {
  const auto at = std::ranges::find(values, value);
  return at == values.end() ? -1 : static_cast<int>(at - values.begin());
}

/// All that decides who gets which sample when, also where a run to resume has stopped.
std::string settings_text(const LoaderOptions& options) {
  LoaderOptions common = options;
  common.placement = LoaderOptions().placement;  // of each rank's own
  std::string text = common.to_text();
  if (options.first_iteration > 0) {
    text += fmt::format(",resumed at iteration {} in epoch {}", options.first_iteration,
                        options.first_epoch);
  }
  for (const Segment& segment : options.done) {
    text += fmt::format(",behind {} iterations of batch {} on {} ranks", segment.iterations,
                        segment.batch, segment.ranks);
  }
  return text;
}

}  // namespace

std::shared_ptr<Pipeline> Pipeline::open(Communicator& comm, const std::string& path,
                                         const LoaderOptions& options, Trace* trace) {
  if (!options.transform.empty() && !options.decode) {
    LoaderOptions decoding = options;
    decoding.decode = true;
    return open(comm, path, decoding, trace);
  }
  std::shared_ptr<Pipeline> pipeline;
  if (options.order == OrderName::strided) {
    pipeline = std::make_shared<StridedPipeline>(path, options, trace);
  } else if (SharedPipeline::suits(options, comm.size())) {
    pipeline = std::make_shared<SharedPipeline>(path, options, trace);
  } else {
    pipeline = std::make_shared<DrawPipeline>(path, options, trace);
  }
  try {
    pipeline->open(comm);
  } catch (...) {
    pipeline->close();  // its threads use what derived classes have
    throw;
  }
  return pipeline;
}

void Pipeline::open(Communicator& comm) {
  const TraceSpan span(trace_, "open");
  connect(comm);
  open_data();
  open_mpiio();
  agree_on_data();
  locate();
  agree_on_values();
  if (options_.decode) plan_decoding();
  make_order();
  make_stage();
  delivered_epochs_ = epochs_done();
  make_stagger();
  collectively(*comm_, [&] { start(); });
  if (options_.decode) start_decoding();
  figures_.open_seconds = static_cast<double>(now_ns() - opened_ns_) * 1e-9;
}

void Pipeline::connect(Communicator& comm) {
  collectively(comm, [&] { options_.validate(comm.size()); });
  comm_ = comm.split(0, comm.rank());
  comm_->set_timeout(options_.patience_with_ranks());
  require_agreement(*comm_, settings_text(options_), "the loader's options");
  node_ = comm_->split_by_node();
  board_ = std::make_shared<FailureBoard>(comm_, node_);
  end_signal_ = std::make_shared<EndSignal>(comm_, board_);
  CorePlan cores = plan_cores(*comm_, options_.placement);
  recognize();
  collectively(*comm_, [&] { setup_ = choose_setup(options_, node_->size(), kind_of(format_)); });
  setup_.cores = std::move(cores);
  group_ = setup_.alone ? node_->split(node_->rank(), 0) : node_;
  local_rank_ = group_->rank();
  find_groups();
  require_threads_for_mpiio();
  adapt_to_thread_level();
  start_progress();
  roots_ = comm_->split(root_ >= 0 ? 0 : 1, comm_->rank());
  if (setup_.locate == Locate::handoff || setup_.locate == Locate::scatter) {
    roots_->carry_messages();
  }
}

void Pipeline::ask_storage(const char* what, std::function<void()> step) const {
  forebay::ask_storage(path_, options_.timeout, what, std::move(step));
}

// Other nodes may see other files: what they are is settled by one rank.
void Pipeline::recognize() {
  collectively(*comm_, [&] {
    if (comm_->rank() != 0) return;
    const auto format = std::make_shared<std::string>();
    ask_storage("open this", [format, path = path_, options = options_] {
      *format = recognize_format(path, options);
    });
    format_ = *format;
  });
  format_ = broadcast_text(*comm_, format_, 0);
  data_ = make_access(path_, options_, format_);
}

void Pipeline::find_groups() {
  RankPlace mine{.leader = comm_->rank(), .roots = setup_.roots};
  share_value(*group_, mine.leader);
  if (setup_.roots > 1) mine.domain = numa_node_of_this_process();
  const auto places = gather_all(*comm_, mine);
  std::map<int, std::vector<int>> domains;  // by leader, as `groups_` are in the end
  std::map<int, RankGroup> groups;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    groups[places[rank].leader].ranks.push_back(order_rank_of(static_cast<int>(rank)));
    domains[places[rank].leader].push_back(places[rank].domain);
  }
  for (auto& [leader, group] : groups) {
    group.roots = choose_roots(domains[leader], places[static_cast<std::size_t>(leader)].roots);
    if (leader == mine.leader) root_ = place_in(group.roots, local_rank_);
    groups_.push_back(std::move(group));
  }
}

// Reading threads must not call MPI then, so what needs them to talk to each other is left out.
void Pipeline::adapt_to_thread_level() {
  if (comm_->concurrent() || comm_->size() == 1) return;
  if (comm_->rank() == 0) {
    log(LogLevel::warning,
        "MPI grants less than MPI_THREAD_MULTIPLE: roots take no turns and locate records each for "
        "itself, and a failure on another node is noticed only while a rank waits for data");
  }
  setup_.stagger = kNoStagger;
  if (setup_.locate == Locate::handoff) setup_.locate = Locate::seek;
  if (setup_.locate == Locate::scatter) setup_.locate = Locate::scan;
}

void Pipeline::start_progress() {
  const bool serves_tickets =
      setup_.stagger != kNoStagger && options_.stagger_by == StaggerBy::ticket;
  const bool wanted = board_->several_nodes() || serves_tickets || setup_.collective;
  if (!comm_->concurrent() || !wanted) return;
  progress_ = progress_thread(placement_of(Component::progress));
  notices_ = progress_->add([board = board_] {
    board->poll();
    return false;
  });
}

void Pipeline::open_data() {
  std::shared_ptr<Peers> peers = std::make_shared<RootPeers>(
      roots_->split(0, roots_->rank()), node_->split(root_ >= 0 ? 0 : 1, node_->rank()));
  // What foreign storage is asked for is asked by another thread, which MPI may not grant.
  if (!comm_->concurrent() && is_foreign(path_)) peers = {peers, &no_peers()};
  collectively(*comm_, [&] {
    if (root_ < 0) return;
    const auto setup = std::make_shared<ReadSetup>(setup_);
    ask_storage("open this", [data = data_, setup, stop = end_signal_->token(), peers] {
      data->open(*setup, stop, *peers);
    });
    setup_ = *setup;
  });
}

DataFacts Pipeline::facts_now() const {
  const auto facts = std::make_shared<DataFacts>();
  ask_storage("tell what this is", [data = data_, facts] { *facts = data->facts(); });
  return *facts;
}

void Pipeline::agree_on_data() {
  collectively(*comm_, [&] {
    if (comm_->rank() != 0) return;
    facts_ = facts_now();
    if (facts_.entries > 0) return;
    throw Error(ErrorKind::not_found, "the data set has no samples",
                "pack some into it, or name another", {.file = path_});
  });
  share_facts();
  collectively(*comm_, [&] { require_same_data(facts_.fingerprint); });
  identity_ = facts_.fingerprint;
  if (!facts_.assembled) return;
  // What is read takes room beside the stage: as much as two of its buffers.
  const std::uint64_t beside =
      setup_.stage_bytes / (static_cast<std::uint64_t>(options_.buffers) + 2) * 2;
  setup_.stage_bytes -= beside;
  private_bytes_ = beside / static_cast<std::uint64_t>(setup_.roots);
}

void Pipeline::share_facts() {
  share_value(*comm_, facts_.entries);
  share_value(*comm_, facts_.stored_bytes);
  share_value(*comm_, facts_.local);
  share_value(*comm_, facts_.assembled);
  std::uint64_t files = facts_.files.size();
  share_value(*comm_, files);
  facts_.files.resize(files);
  if (files > 0) comm_->broadcast(std::as_writable_bytes(std::span(facts_.files)), 0);
  facts_.fingerprint = broadcast_text(*comm_, facts_.fingerprint, 0);
  std::uint64_t parts = facts_.parts.size();
  share_value(*comm_, parts);
  facts_.parts.resize(parts);
  for (std::string& part : facts_.parts) part = broadcast_text(*comm_, part, 0);
}

void Pipeline::require_same_data(const std::string& fingerprint) const {
  if (root_ < 0 || facts_now().fingerprint == fingerprint) return;
  throw Error(ErrorKind::changed, "data set changed while open: ranks see different content",
              "wait until its writer is done, and check that all nodes see the same file",
              {.file = path_});
}

void Pipeline::locate() {
  data_->locate(setup_, {.world = *comm_, .node = *node_, .roots = *roots_});
}

std::uint64_t Pipeline::buffer_budget() const {
  const std::uint64_t budget = budget_beside_arrays();
  const auto stages = static_cast<std::uint64_t>(node_->size() / group_->size());
  const std::uint64_t index = data_->index_bytes() / stages;
  return budget - std::min(index, budget / 4);
}

void Pipeline::agree_on_values() {
  FirstRecord first;
  CodecOptions codec;
  collectively(*comm_, [&] {
    if (comm_->rank() != 0) return;
    codec = data_->codec({options_.codec, options_.schema});
    codec.transform = options_.transform;
    // Shared, since a storage that does not answer keeps its thread beyond this function.
    const auto found = std::make_shared<std::pair<FirstRecord, CodecOptions>>(first, codec);
    ask_storage("read the first sample", [found, data = data_, entries = facts_.entries,
                                          may_skip = options_.undecodable == Undecodable::skip] {
      found->first = look_at_values(*data, entries, may_skip, found->second);
    });
    std::tie(first, codec) = *found;
  });
  codec.codec = broadcast_text(*comm_, codec.codec, 0);
  codec.schema = broadcast_text(*comm_, codec.schema, 0);
  codec.transform = options_.transform;
  // Two builds of one shape have the same fingerprint; their content differs.
  first_value_bytes_ = first.value_bytes;
  identity_ += ",first=" + broadcast_text(*comm_, first.digest, 0);
  share_value(*comm_, first.sample);
  first.key = broadcast_text(*comm_, first.key, 0);
  first.value = broadcast_text(*comm_, first.value, 0);
  collectively(*comm_, [&] {
    if (!options_.fingerprint.empty() && options_.fingerprint != identity_) {
      throw Error(ErrorKind::changed, "this is not the data set that the run to resume has used",
                  "name that one, or start anew without the saved state", {.file = path_});
    }
    try {
      codec_ = make_codec(codec, std::as_bytes(std::span(first.value)));
    } catch (const Error& error) {
      throw error.within({.file = path_, .sample = first.sample, .key = printable_key(first.key)});
    }
  });
}

void Pipeline::make_stage() {
  iteration_ = options_.first_iteration;
  collectively(*comm_, [&] {
    stage_ = std::make_shared<Stage>(*group_, stage_shape(), options_.stage, first_published());
  });
}

}  // namespace forebay
