#include "loader/reading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "comm/posix_shared_memory.hpp"
#include "comm/values.hpp"
#include "format/data_set.hpp"
#include "storage/storages.hpp"

namespace forebay {
namespace {

GiveUp give_up(const Team& team) {
  return [end = team.end] { return (*end)(); };
}

// The turns of all roots are agreed on by all of them, so this is a step of its own.
std::unique_ptr<Stagger> agree_on_turns(const Opened& opened, const FeedPlan& plan) {
  const Team& team = opened.team;
  const int stagger = opened.source.setup.stagger;
  std::unique_ptr<Stagger> turns;
  collectively(*team.world, [&] {
    if (team.root < 0) return;
    const bool off = stagger == kNoStagger || team.roots->size() == 1;
    turns = make_stagger(*team.roots,
                         {.by = off ? StaggerBy::none : opened.options.stagger_by,
                          .group = stagger > 0 ? stagger : StaggerOptions::kAuto,
                          .turns = plan.turns,
                          .known = opened.options.known_stagger,
                          .servers = static_cast<int>(opened.source.facts.servers),
                          .limit = opened.options.patience_with_ranks()},
                         team.progress.get());
  });
  return turns;
}

std::string describe(const Opened& opened) {
  const ReadSetup& setup = opened.source.setup;
  std::string text = fmt::format("{}: ", to_string(opened.options.strategy));
  if (setup.baseline) return text + "every rank reads through liblmdb for itself";
  text += setup.alone ? "every rank reads for itself, "
                      : fmt::format("{} of {} ranks on this node reads for all, ", setup.roots,
                                    opened.team.group->size());
  text += opened.source.data->describe();
  if (!setup.why.empty()) text += fmt::format(" ({})", setup.why);
  return text;
}

// Rank 0 is a root, the first of its stage.
std::optional<ReadOutline> outline(const Opened& opened, const FeedPlan& plan,
                                   std::uint64_t window) {
  const std::uint64_t iterations = plan.list->iterations(window);
  if (iterations == 0) return std::nullopt;
  auto outline = opened.source.data->outline(
      plan.list->runs({.window = window, .phase = Phase::whole, .iterations = iterations}),
      opened.source.setup.gap_bytes);
  if (!outline) return outline;
  outline->window_iterations = plan.map ? iterations : 0;
  outline->value_bytes = outline->window_samples * opened.first_value_bytes;
  outline->buffer_bytes = plan.stage.data_bytes / static_cast<std::uint64_t>(plan.stage.buffers) /
                          static_cast<std::uint64_t>(plan.stage.roots);
  return outline;
}

constexpr std::uint64_t kAlignment = 64;  // of samples in the stage, and of their parts
constexpr std::uint64_t kPage = 4096;

std::uint64_t samples_of(std::span<const SampleRun> runs) {
  std::uint64_t samples = 0;
  for (const SampleRun& run : runs) samples += run.count;
  return samples;
}

/// Of `samples`, by the data set's size; where they are looked up by walking, half of the pages may
/// be empty, and more.
double expected_bytes(const DataFacts& facts, std::uint64_t samples, bool walks) {
  const double mean = static_cast<double>(facts.stored_bytes) / static_cast<double>(facts.entries);
  return mean * static_cast<double>(samples) * (walks ? 0.25 : 1);
}

/// What the reader of `window` plans, before it does.
std::optional<std::uint64_t> planned_bytes(const Opened& opened,
                                           const std::vector<SampleRun>& runs) {
  const auto planned = [runs, data = opened.source.data]() -> std::optional<std::uint64_t> {
    try {
      return data->stage_bytes(runs);
    } catch (const IndexMismatch&) {
      return std::nullopt;  // the reader finds out in another way
    }
  };
  return ask_storage(opened.source.path, opened.options.timeout, "tell where its samples are",
                     planned);
}

/// A part of the stage, and of the shared memory that it lies in, for one window of one root.
struct Room {
  std::uint64_t in_stage = 0;
  std::uint64_t in_memory = std::numeric_limits<std::uint64_t>::max();
};

Room room_of(const Opened& opened, const FeedPlan& plan, const Stage& stage) {
  Room room{.in_stage = stage.room()};
  const auto parts =
      static_cast<std::uint64_t>(plan.stage.buffers) * static_cast<std::uint64_t>(plan.stage.roots);
  if (opened.has_posix_stage()) room.in_memory = free_shared_memory() / parts;
  return room;
}

/// What a root has to put into its part for one window.
struct WindowNeeds {
  std::uint64_t samples = 0;
  std::uint64_t iterations = 1;
  std::uint64_t bytes = 0;  ///< at least
  double likely_bytes = 0;
};

/// What else to do about a window that `room` bytes are too few for.
std::string smaller_window(const FeedPlan& plan, const WindowNeeds& window, std::uint64_t room) {
  const bool strided = plan.map != nullptr;
  const std::string knobs = strided ? "lower --batch, --coalesce, --buffers or --roots"
                                    : "lower --batch, --buffers, --group or --window";
  const double iteration = window.likely_bytes / static_cast<double>(window.iterations);
  const auto fits = static_cast<std::uint64_t>(static_cast<double>(room) / iteration);
  const std::uint64_t coalesce = strided ? plan.map->order().coalesce() : 1;
  if (fits == 0 || fits >= coalesce) return knobs;
  return fmt::format("{}: --coalesce {} fits, which is another order than that of C = {}", knobs,
                     fits, coalesce);
}

void require_room(const std::string& path, const FeedPlan& plan, const Room& room,
                  const WindowNeeds& window) {
  if (window.bytes > room.in_stage) {
    throw Error(ErrorKind::usage,
                fmt::format("a window of {} samples takes {} bytes, and its part of the stage has "
                            "{}",
                            window.samples, window.bytes, room.in_stage),
                "raise --stage-bytes, or " + smaller_window(plan, window, room.in_stage),
                {.file = path});
  }
  if (window.bytes > room.in_memory) {
    throw Error(ErrorKind::io,
                fmt::format("shared memory is too small: {} bytes are needed for a window of {} "
                            "samples, and in its part {} are free",
                            window.bytes, window.samples, room.in_memory),
                "make /dev/shm larger (mount -o remount,size=...), or " +
                    smaller_window(plan, window, room.in_memory),
                {.file = path});
  }
}

/// Looks at the first windows, up to some ten thousand samples, unless there is room in abundance.
/// Windows grow at the start: one of the largest kind is among them.
void require_room_for_first(const Opened& opened, const FeedPlan& plan, const Stage& stage) {
  constexpr std::uint64_t kMostPlanned = std::uint64_t{1} << 16, kMostWindows = 64;
  constexpr double kAbundance = 16;
  const std::string& path = opened.source.path;
  const Room room = room_of(opened, plan, stage);
  const std::uint64_t largest = plan.stage.entries / static_cast<std::uint64_t>(plan.stage.roots);
  const bool walks = !opened.source.setup.reads_extents();
  const double expected = expected_bytes(opened.source.facts, largest, walks);
  if (walks) {
    return require_room(path, plan, room,
                        {.samples = largest,
                         .iterations = plan.stage.iterations,
                         .bytes = static_cast<std::uint64_t>(expected),
                         .likely_bytes = expected_bytes(opened.source.facts, largest, false)});
  }
  if (expected * kAbundance < static_cast<double>(std::min(room.in_stage, room.in_memory))) return;
  const std::uint64_t first = plan.first / plan.stage.iterations;
  std::uint64_t planned = 0, seen = 0;
  for (std::uint64_t window = first; window < first + kMostWindows; ++window) {
    const std::uint64_t iterations = plan.list->iterations(window);
    if (iterations == 0 || (planned >= kMostPlanned && seen >= largest)) break;
    const auto runs =
        plan.list->runs({.window = window, .phase = Phase::whole, .iterations = iterations});
    const std::uint64_t samples = samples_of(runs);
    const std::uint64_t bytes = planned_bytes(opened, runs).value_or(0);
    require_room(path, plan, room,
                 {.samples = samples,
                  .iterations = iterations,
                  .bytes = bytes,
                  .likely_bytes = static_cast<double>(bytes)});
    seen = std::max(seen, samples);
    planned += samples;
  }
}

StageReader make_reader(const Opened& opened, const FeedPlan& plan, Stage& stage, Turns& turns) {
  const Team& team = opened.team;
  const Source& source = opened.source;
  return source.data->make_reader(
      {.list = *plan.list,
       .stage = stage,
       .root = team.root,
       .turns = turns,
       .gap_bytes = source.setup.gap_bytes,
       .keep_bytes = source.setup.keep_bytes,
       .private_bytes = source.private_bytes,
       .node_ranks = team.node->size(),
       .cores = source.setup.cores,
       .give_up = give_up(team),
       .leave = source.steps ? [steps = source.steps] { steps->leave(); } : std::function<void()>(),
       // Nobody else uses the stage, and batches are decoded, that is copied, and then checked; who
       // uses more of them checks Reading::in_place.
       .in_place = plan.in_place && opened.options.decode && team.group->size() == 1,
       .roots = team.roots,
       .map = plan.map,
       .plan = plan.map ? &plan.map->plan_of_rank(team.order_rank) : nullptr,
       .first_iteration = plan.first,
       .end_iteration = plan.end});
}

}  // namespace

void Reading::Stop::operator()(RootReader* stopped) const {
  constexpr std::chrono::seconds kLongestGoodbye{4};
  stopped->stop(kLongestGoodbye);
  delete stopped;
}

std::uint64_t stage_bytes_needed(const Opened& opened, const StageShape& stage) {
  const DataFacts& facts = opened.source.facts;
  // A window reaches over the end of the data set, perhaps several times: it has samples again.
  const double rounds = static_cast<double>(stage.entries) / static_cast<double>(facts.entries) + 2;
  const double beside =
      static_cast<double>(stage.entries) *
      static_cast<double>(sizeof(StageEntry) + kAlignment * (facts.parts.size() + 2));
  const double window =
      rounds * static_cast<double>(facts.stored_bytes) + beside + static_cast<double>(16 * kPage);
  const double all = window * 1.125 * stage.buffers * stage.roots;
  if (all >= static_cast<double>(stage.data_bytes)) return stage.data_bytes;
  return static_cast<std::uint64_t>(all);
}

Reading start_reading(const Opened& opened, const FeedPlan& plan,
                      const std::shared_ptr<Stage>& stage,
                      const std::shared_ptr<ReadFigures>& figures, Trace* trace) {
  const Team& team = opened.team;
  Reading reading;
  std::unique_ptr<Stagger> stagger = agree_on_turns(opened, plan);
  collectively(*team.world, [&] {
    if (team.root < 0) return;
    const std::uint64_t first_window = plan.first / plan.stage.iterations;
    reading.how = describe(opened);
    if (team.roots->size() > 1) reading.turns = stagger->describe();
    if (opened.options.explain && team.world->rank() == 0) {
      reading.outline = outline(opened, plan, first_window);
    }
    auto turns = std::make_unique<Turns>(std::move(stagger), give_up(team));
    auto reader = make_reader(opened, plan, *stage, *turns);
    reading.in_place = std::move(reader.in_place);
    if (!reading.in_place || !reading.in_place->points())
      require_room_for_first(opened, plan, *stage);
    reading.reader.reset(
        new RootReader(RootReaderParts{.path = opened.source.path,
                                       .rank = team.order_rank,
                                       .root = team.root,
                                       .first_window = first_window,
                                       .comm = team.world,
                                       .board = team.board,
                                       .list = plan.list,
                                       .stage = stage,
                                       .figures = figures,
                                       .data = opened.source.data,
                                       .turns = std::move(turns),
                                       .reader = std::move(reader.reader),
                                       .placement = opened.placement(Component::io),
                                       .timeout = opened.options.timeout,
                                       .trace = trace},
                       team.end));
  });
  return reading;
}

}  // namespace forebay
