#include "loader/reading.hpp"

#include <fmt/format.h>

#include <utility>

#include "comm/values.hpp"

namespace forebay {
namespace {

GiveUp give_up(const Team& team) {
  return [end = team.end] { return (*end)(); };
}

// The turns of all roots are agreed on by all of them, so this is a step of its own.
std::unique_ptr<Stagger> agree_on_turns(const Opened& opened) {
  const Team& team = opened.team;
  const int stagger = opened.source.setup.stagger;
  std::unique_ptr<Stagger> turns;
  collectively(*team.world, [&] {
    if (team.root < 0) return;
    const bool off = stagger == kNoStagger || team.roots->size() == 1;
    turns = make_stagger(*team.roots,
                         {.by = off ? StaggerBy::none : opened.options.stagger_by,
                          .group = stagger > 0 ? stagger : StaggerOptions::kAuto,
                          .limit = opened.options.patience_with_ranks()},
                         team.progress.get());
  });
  return turns;
}

std::string describe(const Opened& opened, const Stagger& turns) {
  const ReadSetup& setup = opened.source.setup;
  std::string text = fmt::format("{}: ", to_string(opened.options.strategy));
  if (setup.baseline) return text + "every rank reads through liblmdb for itself";
  text += setup.alone ? "every rank reads for itself, "
                      : fmt::format("{} of {} ranks on this node reads for all, ", setup.roots,
                                    opened.team.group->size());
  text += opened.source.data->describe();
  if (!setup.why.empty()) text += fmt::format(" ({})", setup.why);
  if (opened.team.roots->size() > 1) text += fmt::format(", turns: {}", turns.describe());
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

void Reading::Stop::operator()(RootReader* reader) const {
  constexpr std::chrono::seconds kLongestGoodbye{4};
  reader->stop(kLongestGoodbye);
  delete reader;
}

Reading start_reading(const Opened& opened, const FeedPlan& plan,
                      const std::shared_ptr<Stage>& stage,
                      const std::shared_ptr<ReadFigures>& figures, Trace* trace) {
  const Team& team = opened.team;
  Reading reading;
  std::unique_ptr<Stagger> stagger = agree_on_turns(opened);
  collectively(*team.world, [&] {
    if (team.root < 0) return;
    const std::uint64_t first_window = plan.first / plan.stage.coalesce;
    reading.how = describe(opened, *stagger);
    if (opened.options.explain && team.world->rank() == 0) {
      reading.outline = outline(opened, plan, first_window);
    }
    auto turns = std::make_unique<Turns>(std::move(stagger), give_up(team));
    auto reader = make_reader(opened, plan, *stage, *turns);
    reading.in_place = std::move(reader.in_place);
    if (reading.in_place) reading.how += "; " + reading.in_place->describe();
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
                                       .trace = trace},
                       team.end));
  });
  return reading;
}

}  // namespace forebay
