#include "loader/opened.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "comm/node_groups.hpp"
#include "comm/values.hpp"
#include "core/limits.hpp"
#include "core/log.hpp"
#include "core/number_text.hpp"
#include "format/class_names.hpp"
#include "format/codec/codecs.hpp"
#include "format/registry.hpp"
#include "loader/decoded_arrays.hpp"
#include "loader/first_values.hpp"
#include "loader/who_reads.hpp"
#include "storage/answers.hpp"
#include "storage/storages.hpp"
#include "storage/url.hpp"

namespace forebay {
namespace {

// What a root says should reach the others before their consumers wait for it.
constexpr std::chrono::microseconds kStepsRest{2000};

/// Roots as the peers of a format, over communicators.
class RootPeers final : public Peers {
 public:
  /// `roots` are all roots, `of_node` those among them that share memory; both carry nothing else.
  RootPeers(std::shared_ptr<Communicator> roots, std::shared_ptr<Communicator> of_node)
      : roots_(std::move(roots)), of_node_(std::move(of_node)) {}

  int rank() const override { return roots_->rank(); }
  int size() const override { return roots_->size(); }
  void together(const std::function<void()>& step) override { collectively(*roots_, step); }
  std::string told_by(int from, const std::string& bytes) override {
    return broadcast_text(*roots_, bytes, from);
  }
  PeerMemory share(std::uint64_t bytes) override {
    const std::shared_ptr<SharedMemory> memory = of_node_->share(bytes, SharedMemoryKind::posix);
    return {.bytes = memory->bytes(),
            .reserve = [memory = memory.get()](std::size_t offset,
                                               std::size_t size) { memory->reserve(offset, size); },
            .owner = memory};
  }

 private:
  std::shared_ptr<Communicator> roots_;
  std::shared_ptr<Communicator> of_node_;
};

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
  if (options.one_at_a_time) text += ",one at a time";
  return text;
}

Ranks connect(Communicator& comm, const LoaderOptions& options) {
  collectively(comm, [&] { options.validate(comm.size()); });
  Ranks ranks;
  ranks.world = comm.split(0, comm.rank());
  ranks.world->set_timeout(options.patience_with_ranks());
  require_agreement(*ranks.world, settings_text(options), "the loader's options");
  ranks.node = ranks.world->split_by_node();
  ranks.board = std::make_shared<FailureBoard>(ranks.world, ranks.node);
  ranks.end = std::make_shared<EndSignal>(ranks.world, ranks.board);
  ranks.order_rank = options.order_rank(comm.rank(), comm.size());
  ranks.order_ranks = options.order_ranks(comm.size());
  return ranks;
}

/// What is known of files before anybody opens them.
struct Recognized {
  std::string format;
  bool local = true;  ///< on a disk of this node, as far as is known
};

/// Other nodes may see other files: what they are is settled by one rank.
Recognized recognize(const Ranks& ranks, const std::string& path, const LoaderOptions& options) {
  Recognized found;
  const bool matters = ranks.world->size() > 1 || options.order != OrderName::strided;
  collectively(*ranks.world, [&] {
    if (ranks.world->rank() != 0) return;
    found = ask_storage(path, options.timeout, "open this",
                        [path, matters, name = options.format,
                         how = format_options(options, ReadEngine::pread)]() -> Recognized {
                          return {.format = name == "auto" ? recognise_files(path, how) : name,
                                  .local = !matters || are_local_files(path)};
                        });
  });
  found.format = broadcast_text(*ranks.world, found.format, 0);
  share_value(*ranks.world, found.local);
  return found;
}

ReadSetup choose(const Ranks& ranks, const LoaderOptions& options, const std::string& path,
                 const Recognized& found, CorePlan cores) {
  ReadSetup setup;
  const ReadAlone alone = who_reads(ranks, options, found.local);
  collectively(*ranks.world, [&] {
    setup =
        choose_setup(options, ranks.node->size(), find_format(found.format, path).located, alone);
    const bool threads = setup.engine != ReadEngine::mpiio || ranks.world->concurrent();
    if (threads) return;
    throw Error(
        ErrorKind::unsupported,
        "engine mpiio calls MPI in helper threads, and MPI grants less than "
        "MPI_THREAD_MULTIPLE",
        "initialise MPI with MPI_Init_thread(MPI_THREAD_MULTIPLE), or use another --engine");
  });
  if (setup.alone && asks_for_turns(options) && ranks.world->rank() == 0 &&
      ranks.world->size() > 1) {
    log(LogLevel::warning, "no turns are taken: each rank reads for itself{}",
        alone == ReadAlone::unless_roots ? " ('--roots 1' lets one of each node read for all)"
                                         : "");
  }
  setup.cores = std::move(cores);
  return setup;
}

/// Reading threads must not call MPI then, so what needs them to talk to each other is left out.
void adapt_to_thread_level(const Ranks& ranks, ReadSetup& setup) {
  if (ranks.world->concurrent() || ranks.world->size() == 1) return;
  if (ranks.world->rank() == 0) {
    log(LogLevel::warning,
        "MPI grants less than MPI_THREAD_MULTIPLE: roots take no turns and locate records each for "
        "itself, and a failure on another node is noticed only while a rank waits for data");
  }
  setup.stagger = kNoStagger;
  setup.locate_alone();
}

void find_groups(Team& team, const LoaderOptions& options, int roots) {
  const NodesOfRanks stages = find_nodes(*team.world, *team.group);
  const auto domains = gather_all(*team.world, roots > 1 ? numa_node_of_this_process() : -1);
  const auto wanted = gather_all(*team.world, roots);
  const auto count = static_cast<std::size_t>(stages.count);
  std::vector<std::vector<int>> domains_of(count);
  std::vector<int> roots_of(count);
  team.groups.resize(count);
  for (std::size_t rank = 0; rank < domains.size(); ++rank) {
    const auto group = static_cast<std::size_t>(stages.node[rank]);
    team.groups[group].ranks.push_back(
        options.order_rank(static_cast<int>(rank), team.world->size()));
    domains_of[group].push_back(domains[rank]);
    roots_of[group] = wanted[rank];
  }
  for (std::size_t group = 0; group < count; ++group) {
    team.groups[group].roots = choose_roots(domains_of[group], roots_of[group]);
  }
  const auto mine = static_cast<std::size_t>(team.world->rank());
  const auto& reading = team.groups[static_cast<std::size_t>(stages.node[mine])].roots;
  const auto at = std::ranges::find(reading, team.group->rank());
  if (at != reading.end()) team.root = static_cast<int>(at - reading.begin());
}

void start_progress(Team& team, const LoaderOptions& options, const ReadSetup& setup) {
  const bool serves_tickets =
      setup.stagger != kNoStagger && options.stagger_by == StaggerBy::ticket;
  const bool wanted = team.board->several_nodes() || serves_tickets || setup.collective;
  if (!team.world->concurrent() || !wanted) return;
  team.progress = progress_thread(Placement::of(setup.cores, Component::progress));
  team.notices = team.progress->add([board = team.board] {
    board->poll();
    return false;
  });
}

Team team_up(Ranks ranks, const LoaderOptions& options, const ReadSetup& setup) {
  Team team{std::move(ranks)};
  team.group = setup.alone ? team.node->split(team.node->rank(), 0) : team.node;
  find_groups(team, options, setup.roots);
  start_progress(team, options, setup);
  team.roots = team.world->split(team.root >= 0 ? 0 : 1, team.world->rank());
  if (setup.locate == Locate::handoff || setup.locate == Locate::scatter) {
    team.roots->carry_messages();
  }
  return team;
}

// The data set -----------------------------------------------------------------------------------

std::shared_ptr<Peers> make_peers(const Team& team, const std::string& path) {
  const auto roots = team.roots->split(0, team.roots->rank());
  const auto of_node = team.node->split(team.root >= 0 ? 0 : 1, team.node->rank());
  for (const auto& comm : {roots, of_node}) {
    comm->set_interrupt([board = team.board] { board->check(); });
  }
  std::shared_ptr<Peers> peers = std::make_shared<RootPeers>(roots, of_node);
  // What foreign storage is asked for is asked by another thread, which MPI may not grant.
  if (!team.world->concurrent() && is_foreign(path)) peers = {peers, &no_peers()};
  return peers;
}

/// As ask_storage(), for a step in which roots find out together what is on a file system: there
/// MPI may not grant that to another thread. A root that fails alone, in the middle of the step or
/// before it, is not waited for there: the others hear of it by the board.
template <typename Step>
auto ask_with_peers(const Team& team, const LoaderOptions& options, const std::string& path,
                    const char* what, Step step) {
  const bool here = !team.world->concurrent() && !is_foreign(path);
  try {
    return here ? step() : ask_storage(path, options.timeout, what, std::move(step));
  } catch (const std::exception& error) {
    team.board->fail(as_error(error, "opening this").at_rank(team.world->rank()));
    throw;
  }
}

/// On roots. `setup` changes as the system allows.
OpenedData open_data(const Team& team, const LoaderOptions& options, const std::string& path,
                     const std::string& format, const std::shared_ptr<Peers>& peers,
                     ReadSetup& setup) {
  OpenedData opened;
  collectively(*team.world, [&] {
    if (team.root < 0) return;
    const auto open = [options, setup, path, format, stop = team.end->token(), peers] {
      ReadSetup chosen = setup;
      OpenedData data = open_to_read(path, format, options, chosen, stop, *peers);
      return std::pair(std::move(data), std::move(chosen));
    };
    std::tie(opened, setup) = ask_with_peers(team, options, path, "open this", open);
  });
  return opened;
}

/// Collective. MPI's readers take the place of ours; the scan at open uses the independent one.
void open_mpiio(const Team& team, const LoaderOptions& options, OpenedData& opened,
                Source& source) {
  if (source.setup.engine != ReadEngine::mpiio) return;
  collectively(*team.world, [&] {
    if (!is_foreign(source.path)) return;
    throw Error(ErrorKind::unsupported, "MPI-IO opens files of the operating system only",
                "use '--engine pread'", {.file = source.path});
  });
  collectively(*team.world, [&] {
    if (team.root < 0) return;
    const auto alone = team.roots->split(team.roots->rank(), 0);
    const auto file = opened.only_file();
    if (!file) {
      throw Error(ErrorKind::unsupported, "engine mpiio reads data sets of a single file",
                  "use '--engine pread'", {.file = source.path});
    }
    opened.bulk = make_independent_reader(*alone, file,
                                          {.depth = options.depth,
                                           .request_bytes = options.request_bytes,
                                           .timeout = options.timeout,
                                           .stop = team.end->token()});
    if (!source.setup.collective) return;
    source.steps = std::make_shared<CommonSteps>(team.roots->split(0, team.roots->rank()));
    if (team.progress) {
      source.steps_served =
          team.progress->add([steps = source.steps] { return steps->serve(); }, kStepsRest);
    }
    opened.together =
        std::make_unique<CollectiveReader>(file, team.roots->open_together(file->path()),
                                           source.steps, [end = team.end] { return (*end)(); });
  });
}

DataFacts facts_now(const Source& source, const LoaderOptions& options) {
  return ask_storage(source.path, options.timeout, "tell what this is",
                     [data = source.data] { return data->facts(); });
}

void share_facts(Communicator& world, DataFacts& facts) {
  share_value(world, facts.entries);
  share_value(world, facts.file_bytes);
  share_value(world, facts.stored_bytes);
  share_value(world, facts.local);
  share_value(world, facts.assembled);
  std::uint64_t files = facts.files.size();
  share_value(world, files);
  facts.files.resize(files);
  if (files > 0) world.broadcast(std::as_writable_bytes(std::span(facts.files)), 0);
  facts.fingerprint = broadcast_text(world, facts.fingerprint, 0);
  facts.classes = parse_class_names(broadcast_text(world, class_names_text(facts.classes), 0),
                                    "the class names of rank 0");
  std::uint64_t parts = facts.parts.size();
  share_value(world, parts);
  facts.parts.resize(parts);
  for (std::string& part : facts.parts) part = broadcast_text(world, part, 0);
}

void agree_on_facts(const Team& team, const LoaderOptions& options, Source& source) {
  collectively(*team.world, [&] {
    if (team.world->rank() != 0) return;
    source.facts = facts_now(source, options);
    if (source.facts.entries > 0) return;
    throw Error(ErrorKind::not_found, "the data set has no samples",
                "pack some into it, or name another", {.file = source.path});
  });
  share_facts(*team.world, source.facts);
  collectively(*team.world, [&] {
    const std::string& known = source.facts.fingerprint;
    if (team.root < 0 || facts_now(source, options).fingerprint == known) return;
    throw Error(ErrorKind::changed, "data set changed while open: ranks see different content",
                "wait until its writer is done, and check that all nodes see the same file",
                {.file = source.path});
  });
}

Source open_source(const Team& team, const LoaderOptions& options, const std::string& path,
                   const std::string& format, ReadSetup setup) {
  const auto peers = make_peers(team, path);
  OpenedData opened = open_data(team, options, path, format, peers, setup);
  Source source{.path = path,
                .setup = std::move(setup),
                .data = {},
                .facts = {},
                .steps = {},
                .steps_served = {}};
  open_mpiio(team, options, opened, source);
  if (team.root >= 0) {
    source.data =
        std::make_shared<DataAccess>(std::move(opened), options, source.setup, team.end->token());
  }
  agree_on_facts(team, options, source);
  if (source.facts.assembled) {
    // What is read takes room beside the stage: as much as two of its buffers.
    const std::uint64_t beside =
        source.setup.stage_bytes / (static_cast<std::uint64_t>(options.buffers) + 2) * 2;
    source.setup.stage_bytes -= beside;
    source.private_bytes = beside / static_cast<std::uint64_t>(source.setup.roots);
  }
  collectively(*team.world, [&] {
    if (team.root < 0) return;
    const auto locate = [data = source.data, peers] { data->locate(*peers); };
    // (What is foreign is asked by the data set itself, which knows when.)
    if (is_foreign(path)) return locate();
    ask_with_peers(team, options, path, "tell where its samples are", locate);
  });
  if (team.root >= 0) source.index_bytes = source.data->index_bytes();
  share_value(*team.node, source.index_bytes);  // of rank 0, which is a root
  return source;
}

// Its values -------------------------------------------------------------------------------------

/// What rank 0 finds, on all ranks.
FirstValues look_at_first_values(const Team& team, const Source& source,
                                 const LoaderOptions& options) {
  FirstValues first;
  Communicator& world = *team.world;
  collectively(world, [&] {
    if (world.rank() != 0) return;
    CodecOptions codec = source.data->codec({options.codec, options.schema});
    codec.transform = options.transform;
    first = ask_storage(source.path, options.timeout, "read the first sample",
                        [codec, data = source.data, entries = source.facts.entries,
                         may_skip = options.undecodable == Undecodable::skip] {
                          return look_at_values(*data, entries, may_skip, codec);
                        });
  });
  first.digest = broadcast_text(world, first.digest, 0);
  TellingSample& telling = first.telling;
  telling.codec = {.codec = broadcast_text(world, telling.codec.codec, 0),
                   .schema = broadcast_text(world, telling.codec.schema, 0),
                   .transform = options.transform};
  share_value(world, telling.sample);
  telling.key = broadcast_text(world, telling.key, 0);
  telling.value = broadcast_text(world, telling.value, 0);
  return first;
}

void agree_on_values(Opened& opened) {
  const LoaderOptions& options = opened.options;
  const std::string& path = opened.source.path;
  const FirstValues first = look_at_first_values(opened.team, opened.source, options);
  opened.first_value_bytes = first.value_bytes;
  // Two builds of one shape have the same fingerprint; their content differs.
  opened.identity = opened.source.facts.fingerprint + ",first=" + first.digest;
  collectively(*opened.team.world, [&] {
    if (!options.fingerprint.empty() && options.fingerprint != opened.identity) {
      throw Error(ErrorKind::changed, "this is not the data set that the run to resume has used",
                  "name that one, or start anew without the saved state", {.file = path});
    }
    opened.codec = first.telling.make(path);
  });
}

DecodePlan plan_decoding(const Opened& opened) {
  const LoaderOptions& options = opened.options;
  const std::uint64_t stage_bytes = opened.source.setup.stage_bytes;
  DecodePlan plan;
  collectively(*opened.team.world, [&] {
    const auto ranks = static_cast<std::uint64_t>(opened.team.order_ranks);
    const std::uint64_t share = (options.batch + ranks - 1) / ranks;
    const std::uint64_t one = std::max<std::uint64_t>(
        DecodedArrays::bytes_of(opened.codec->schema(), share), 1);  // of one rank
    const auto sharing = static_cast<std::uint64_t>(opened.team.group->size());
    const std::uint64_t fitting = stage_bytes / 2 / sharing / one;
    if (fitting == 0) {
      throw Error(ErrorKind::usage,
                  fmt::format("decoded batches of {} ranks, of {} bytes each, exceed half of the "
                              "stage's {} bytes",
                              sharing, one, stage_bytes),
                  "raise --stage-bytes, or lower --batch", {.file = opened.source.path});
    }
    plan.ahead = static_cast<unsigned>(std::min<std::uint64_t>(options.decode_ahead, fitting - 1));
    plan.arrays_bytes = (plan.ahead + 1) * one * sharing;
  });
  if (plan.ahead != options.decode_ahead && opened.team.group->rank() == 0) {
    log(LogLevel::info, "{} instead of {} batches are decoded ahead: more do not fit half of {}",
        plan.ahead, options.decode_ahead, format_bytes(stage_bytes));
  }
  return plan;
}

}  // namespace

const RankGroup& Team::own_group() const {
  return *std::ranges::find_if(groups, [this](const RankGroup& one) {
    return std::ranges::find(one.ranks, order_rank) != one.ranks.end();
  });
}

int Team::all_roots() const {
  std::size_t count = 0;
  for (const RankGroup& one : groups) count += one.roots.size();
  return static_cast<int>(count);
}

std::uint64_t Opened::bytes_beside_arrays() const {
  return source.setup.stage_bytes - decoding.arrays_bytes;
}

std::uint64_t Opened::buffer_bytes() const {
  const std::uint64_t budget = bytes_beside_arrays();
  const auto stages = static_cast<std::uint64_t>(team.node->size() / team.group->size());
  const std::uint64_t index = source.index_bytes / stages;
  return budget - std::min(index, budget / 4);
}

bool Opened::has_posix_stage() const {
  return team.group->size() > 1 && options.stage == SharedMemoryKind::posix;
}

Placement Opened::placement(Component component) const {
  return Placement::of(source.setup.cores, component);
}

Opened open_together(Communicator& comm, const std::string& path, const LoaderOptions& wanted) {
  LoaderOptions options = wanted;
  options.decode = options.decode || !options.transform.empty();
  Ranks ranks = connect(comm, options);
  CorePlan cores = plan_cores(*ranks.world, options.placement);
  const Recognized found = recognize(ranks, path, options);
  ReadSetup setup = choose(ranks, options, path, found, std::move(cores));
  adapt_to_thread_level(ranks, setup);
  Team team = team_up(std::move(ranks), options, setup);
  setup.apart = !found.local && lie_apart(team, options);
  Source source = open_source(team, options, path, found.format, std::move(setup));
  Opened opened{.options = std::move(options),
                .team = std::move(team),
                .source = std::move(source),
                .identity = {},
                .codec = {}};
  agree_on_values(opened);
  if (opened.options.decode) opened.decoding = plan_decoding(opened);
  return opened;
}

}  // namespace forebay
