// The reading side of a Pipeline: what a root's thread is made of, and how it is told in words.
#include <fmt/format.h>

#include "loader/pipeline.hpp"

namespace forebay {

void Pipeline::start() {
  if (root_ < 0) return;
  how_ = describe();
  const std::shared_ptr<ReadingList> list = reading_list();
  if (options_.explain && comm_->rank() == 0) outline(*list);
  auto turns = std::make_unique<Turns>(std::move(stagger_), give_up());
  RootReaderParts parts{.path = path_,
                        .rank = order_rank(),
                        .root = root_,
                        .first_window = first_window(),
                        .comm = comm_,
                        .board = board_,
                        .list = list,
                        .stage = stage_,
                        .figures = read_figures_,
                        .data = data_,
                        .turns = std::move(turns),
                        .reader = nullptr,
                        .placement = placement_of(Component::io),
                        .trace = trace_};
  parts.reader = make_reader(*list, *parts.turns);
  const std::string in_place = data_->describe_in_place();
  if (!in_place.empty()) how_ += "; " + in_place;
  reader_ = std::make_unique<RootReader>(std::move(parts), end_signal_);
  started();
}

std::unique_ptr<PieceReader> Pipeline::make_reader(ReadingList& list, Turns& turns) {
  ReaderSite site{.list = list,
                  .stage = *stage_,
                  .root = root_,
                  .turns = turns,
                  .gap_bytes = setup_.gap_bytes,
                  .keep_bytes = setup_.keep_bytes,
                  .private_bytes = private_bytes_,
                  .node_ranks = node_->size(),
                  .cores = setup_.cores,
                  .give_up = give_up(),
                  .leave = steps_ ? [steps = steps_] { steps->leave(); } : std::function<void()>(),
                  .roots = roots_};
  complete(site);
  return data_->make_reader(site);
}

// Rank 0 is a root, the first of its stage.
void Pipeline::outline(ReadingList& list) {
  const std::uint64_t window = first_window();
  const std::uint64_t iterations = list.iterations(window);
  if (iterations == 0) return;
  outline_ =
      data_->outline(list.runs({.window = window, .phase = Phase::whole, .iterations = iterations}),
                     setup_.gap_bytes);
  if (!outline_) return;
  const StageShape& shape = stage_->shape();
  outline_->window_iterations = options_.order == OrderName::strided ? iterations : 0;
  outline_->value_bytes = outline_->window_samples * first_value_bytes_;
  outline_->buffer_bytes = shape.data_bytes / static_cast<std::uint64_t>(shape.buffers) /
                           static_cast<std::uint64_t>(shape.roots);
}

std::uint64_t Pipeline::first_window() const {
  return first_published() / stage_->shape().coalesce;
}

GiveUp Pipeline::give_up() const {
  return [end = end_signal_] { return (*end)(); };
}

std::string Pipeline::describe() const {
  std::string text = fmt::format("{}: ", to_string(options_.strategy));
  if (setup_.baseline) return text + "every rank reads through liblmdb for itself";
  text += setup_.alone ? "every rank reads for itself, "
                       : fmt::format("{} of {} ranks on this node reads for all, ", setup_.roots,
                                     group_->size());
  text += data_->describe();
  if (!setup_.why.empty()) text += fmt::format(" ({})", setup_.why);
  if (roots_->size() > 1) text += fmt::format(", turns: {}", stagger_->describe());
  return text;
}

// The turns of all roots are agreed on by all of them, so this is a step of its own.
void Pipeline::make_stagger() {
  collectively(*comm_, [&] {
    if (root_ < 0) return;
    const bool off = setup_.stagger == kNoStagger || roots_->size() == 1;
    stagger_ = forebay::make_stagger(
        *roots_,
        {.by = off ? StaggerBy::none : options_.stagger_by,
         .group = setup_.stagger > 0 ? setup_.stagger : StaggerOptions::kAuto,
         .limit = options_.patience_with_ranks()},
        progress_.get());
  });
}

}  // namespace forebay
