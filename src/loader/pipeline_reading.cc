// The reading side of a Pipeline: what a root's thread is made of, and how it is told in words.
#include <fmt/format.h>

#include <algorithm>

#include "loader/pipeline.hpp"
#include "read/extent_reader.hpp"
#include "read/handoff_reader.hpp"
#include "read/scattered_index.hpp"
#include "read/walk_reader.hpp"

namespace forebay {

void Pipeline::start() {
  if (root_ < 0) return;
  how_ = describe();
  outline_first_window();
  auto turns =
      std::make_unique<Turns>(std::move(stagger_), [end = end_signal_] { return (*end)(); });
  RecordSource& source = *data_.source;
  RootReaderParts parts{.path = path_,
                        .rank = comm_->rank(),
                        .root = root_,
                        .first_iteration = options_.first_iteration,
                        .end = end_,
                        .comm = comm_,
                        .board = board_,
                        .map = map_,
                        .stage = stage_,
                        .index_memory = located_.memory,
                        .figures = read_figures_,
                        .source = std::move(data_.source),
                        .turns = std::move(turns),
                        .reader = nullptr,
                        .trace = trace_};
  parts.reader = make_reader(source, *parts.turns);
  reader_ = std::make_unique<RootReader>(std::move(parts), end_signal_);
}

std::unique_ptr<PieceReader> Pipeline::make_reader(RecordSource& source, Turns& turns) {
  const GiveUp give_up = [end = end_signal_] { return (*end)(); };
  if (setup_.locate == Locate::handoff) {
    HandoffParts parts{.source = static_cast<lmdb::LmdbSource&>(source),
                       .plan = HandOffPlan(map_, options_.first_iteration, end_),
                       .me = roots_->rank(),
                       .link = CursorLink(roots_, options_.patience_with_ranks()),
                       .give_up = give_up};
    return std::make_unique<HandoffReader>(std::move(parts), *plan_, *stage_, root_, turns);
  }
  if (!setup_.reads_extents()) {
    return std::make_unique<WalkReader>(source, *plan_, *stage_, root_, turns);
  }
  lmdb::Database& database = *data_.database;
  PrepareIndex prepare;
  std::function<void()> leave;
  if (setup_.locate == Locate::scatter) {
    auto scattered = std::make_unique<ScatteredIndex>(database, map_, roots_,
                                                      options_.patience_with_ranks(), give_up);
    prepare = [index = scattered.get()](const WindowPart& part) { index->prepare(part); };
    leave = [index = scattered.get()] { index->leave(); };
    located_.index = std::move(scattered);
  }
  BulkReader& bulk = *data_.bulk;
  ExtentReaderParts parts{.source = &source,
                          .index = std::move(located_.index),
                          .prepare = std::move(prepare),
                          .leave = std::move(leave),
                          .replace = [&database, &bulk] { return scan_alone(database, bulk); },
                          .bulk = std::move(data_.bulk),
                          .gap_bytes = options_.gap_bytes};
  return std::make_unique<ExtentReader>(std::move(parts), *plan_, *stage_, root_, turns);
}

// Rank 0 is a root, the first of all.
void Pipeline::outline_first_window() {
  if (!options_.explain || comm_->rank() != 0 || !located_.index) return;
  const auto areas =
      static_cast<std::uint64_t>(options_.buffers) * static_cast<std::uint64_t>(setup_.roots);
  outline_ = outline_of_window(*map_, *located_.index,
                               {.root = 0,
                                .iterations = std::min(options_.coalesce, end_),
                                .gap_limit = options_.gap_bytes,
                                .first_value_bytes = first_value_bytes_,
                                .buffer_bytes = setup_.stage_bytes / areas});
}

std::string Pipeline::describe() const {
  std::string text = fmt::format("{}: ", to_string(options_.strategy));
  if (setup_.baseline) return text + "every rank reads through liblmdb for itself";
  text += fmt::format("{} of {} ranks on this node reads for all, ", setup_.roots, group_->size());
  text += located_.how.empty() ? fmt::format("locate {}", to_string(setup_.locate)) : located_.how;
  text += data_.bulk ? fmt::format(", {}", data_.bulk->describe())
                     : fmt::format(", engine {}", to_string(setup_.engine));
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
         .group = setup_.stagger == kMeasureStagger ? StaggerOptions::kAuto : setup_.stagger,
         .limit = options_.patience_with_ranks()},
        progress_.get());
  });
}

}  // namespace forebay
