// The reading side of a Pipeline: what a root's thread is made of, and how it is told in words.
#include <fmt/format.h>

#include "loader/pipeline.hpp"
#include "read/walk_reader.hpp"

namespace forebay {

void Pipeline::start() {
  if (root_ < 0) return;
  how_ = describe();
  if (options_.explain && comm_->rank() == 0 && located_.index) outline();
  auto turns = std::make_unique<Turns>(std::move(stagger_), give_up());
  RecordSource& source = *data_.source;
  RootReaderParts parts{.path = path_,
                        .rank = comm_->rank(),
                        .root = root_,
                        .first_window = first_published() / stage_->shape().coalesce,
                        .comm = comm_,
                        .board = board_,
                        .list = reading_list(),
                        .stage = stage_,
                        .index_memory = located_.memory,
                        .figures = read_figures_,
                        .source = std::move(data_.source),
                        .turns = std::move(turns),
                        .reader = nullptr,
                        .trace = trace_};
  parts.reader = make_reader(source, *parts.list, *parts.turns);
  reader_ = std::make_unique<RootReader>(std::move(parts), end_signal_);
  started();
}

GiveUp Pipeline::give_up() const {
  return [end = end_signal_] { return (*end)(); };
}

std::unique_ptr<PieceReader> Pipeline::make_reader(RecordSource& source, ReadingList& list,
                                                   Turns& turns) {
  if (!setup_.reads_extents()) {
    return std::make_unique<WalkReader>(source, list, *stage_, root_, turns);
  }
  return read_extents(source, list, turns, {}, {});
}

std::unique_ptr<PieceReader> Pipeline::read_extents(RecordSource& source, ReadingList& list,
                                                    Turns& turns, PrepareIndex prepare,
                                                    std::function<void()> leave) {
  lmdb::Database& database = *data_.database;
  BulkReader& bulk = *data_.bulk;
  ExtentReaderParts parts{.source = &source,
                          .index = std::move(located_.index),
                          .prepare = std::move(prepare),
                          .leave = std::move(leave),
                          .replace = [&database, &bulk] { return scan_alone(database, bulk); },
                          .bulk = std::move(data_.bulk),
                          .gap_bytes = options_.gap_bytes,
                          .keep_bytes = keep_bytes_};
  return std::make_unique<ExtentReader>(std::move(parts), list, *stage_, root_, turns);
}

std::string Pipeline::describe() const {
  std::string text = fmt::format("{}: ", to_string(options_.strategy));
  if (setup_.baseline) return text + "every rank reads through liblmdb for itself";
  text += setup_.alone ? "every rank reads for itself, "
                       : fmt::format("{} of {} ranks on this node reads for all, ", setup_.roots,
                                     group_->size());
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
