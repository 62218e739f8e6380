#include "loader/pipeline.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/number_text.hpp"
#include "loader/shard.hpp"

namespace forebay {

FeedPlan plan_feed(const Opened& opened) {
  const LoaderOptions& options = opened.options;
  if (options.order == OrderName::strided) return plan_strided(opened);
  const bool exchanges = opened.team.world->size() > 1 && !what_exchanges(options).empty();
  return exchanges || holds_all(options) ? plan_shared(opened) : plan_drawn(opened);
}

std::shared_ptr<Pipeline> Pipeline::open(Communicator& comm, const std::string& path,
                                         const LoaderOptions& options, Trace* trace) {
  const TraceSpan span(trace, "open");
  const RunStart start;
  Opened opened = open_together(comm, path, options);
  FeedPlan plan = plan_feed(opened);
  if (opened.options.stage_bytes == 0)
    plan.stage.data_bytes = stage_bytes_needed(opened, plan.stage);
  std::shared_ptr<Stage> stage;
  collectively(*opened.team.world, [&] {
    stage =
        std::make_shared<Stage>(*opened.team.group, plan.stage, opened.options.stage, plan.first);
  });
  std::shared_ptr<Pipeline> pipeline(
      new Pipeline(start, std::move(opened), std::move(plan), std::move(stage), trace));
  pipeline->start();
  return pipeline;
}

Pipeline::Pipeline(const RunStart& start, Opened opened, FeedPlan plan,
                   std::shared_ptr<Stage> stage, Trace* trace)
    : opened_(std::move(opened)),
      plan_(std::move(plan)),
      stage_(std::move(stage)),
      trace_(trace),
      watch_({.file = opened_.source.path, .rank = opened_.team.order_rank}, opened_.team.board,
             stage_),
      data_(watch_, stage_, opened_.options.patience_with_data(), trace),
      held_(plan_.first),
      figures_(start, opened_.source.path, plan_.epochs_done) {}

/// Starts the helper threads. Collective; after it, nothing but the consumer's side is left here.
void Pipeline::start() {
  reading_ = start_reading(opened_, plan_, stage_, figures_.reading(), trace_);
  const auto begin_feed = std::exchange(plan_.start, {});
  collectively(*opened_.team.world, [&] {
    feed_ = begin_feed({.opened = opened_,
                        .stage = stage_,
                        .watch = watch_,
                        .data = data_,
                        .held = held_,
                        .trace = trace_});
  });
  if (opened_.options.decode) start_decoding();
  figures_.end_opening();
}

void Pipeline::start_decoding() {
  // More do not help: then it is the memory that is busy, and the consumer has work for cores too.
  constexpr unsigned kMostThreads = 8;
  collectively(*opened_.team.world, [&] {
    const LoaderOptions& options = opened_.options;
    const Placement placement = opened_.placement(Component::decode);
    const unsigned threads =
        choose_workers(options.decode_threads, placement, opened_.team.node->size(), kMostThreads);
    auto pool = std::make_unique<DecodePool>(opened_.codec, options.undecodable, threads,
                                             std::size_t{opened_.decoding.ahead} + 1, placement,
                                             [in_place = reading_.in_place] {
                                               if (in_place) in_place->check();
                                             });
    BatchSource& source = *this;
    line_ = std::make_unique<DecodeLine>(std::move(pool), source, opened_.decoding.ahead, trace_);
    line_->start(placement);
  });
}

// A batch that outlives its loader keeps its buffer: only what is not held is released here.
void Pipeline::close() {
  if (closed_) return;
  closed_ = true;
  if (line_) {
    stage_->wake();
    line_->stop();  // its thread uses the feed
    // Batches that the consumer has not got hold nothing any more.
    const auto lock = line_->lock();
    for (; !line_->empty(); held_.drop_last()) line_->drop_last();
  }
  if (feed_) feed_->close();
  reading_.reader.reset();
  opened_.source.data.reset();
  if (opened_.team.root >= 0) stage_->close_root(opened_.team.root);
  if (held_.empty()) stage_->release_all(opened_.team.group->rank());
}

// The consumer -----------------------------------------------------------------------------------

std::optional<Delivery> Pipeline::next() {
  watch_.check_here();
  auto delivery = line_ ? next_decoded() : take_now();
  if (!delivery) return delivery;
  const auto lock = lock_order();
  figures_.count(*delivery);
  return delivery;
}

/// Waits for the data of the next batch.
std::optional<Delivery> Pipeline::take_now() {
  std::optional<BatchPass> pass;
  try {
    pass = feed_->next();
  } catch (const Error& error) {
    watch_.fail_everywhere(error);
  }
  if (!pass) return std::nullopt;
  require_free_buffers();
  try {
    return take(*pass);
  } catch (const BatchesHeld&) {
    throw;
  } catch (const Error& error) {
    watch_.fail_everywhere(error);
  }
}

Delivery Pipeline::take(const BatchPass& pass) {
  Delivery delivery = feed_->take(pass);
  held_.add(delivery);
  return delivery;
}

/// Throws usage when buffers that the next batch needs are held.
void Pipeline::require_free_buffers() const {
  if (held_.empty()) return;
  const auto end = feed_->end_of_next();
  if (!end || has_room(*end)) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("all {} buffers hold batches that were not released", plan_.stage.buffers),
      "release batches before asking for the next, or raise buffers");
}

/// Held batches keep their buffers from being filled, those in the line among them.
bool Pipeline::has_room(std::uint64_t end) const {
  const std::uint64_t oldest = held_.from(), window = plan_.stage.iterations;
  const auto buffers = static_cast<std::uint64_t>(plan_.stage.buffers);
  return end <= oldest || (end - 1) / window < oldest / window + buffers;
}

void Pipeline::release(std::uint64_t iteration) {
  const auto lock = lock_order();
  held_.release(iteration);
  if (closed_ && held_.empty()) {
    stage_->release_all(opened_.team.group->rank());
  } else {
    feed_->let_go(held_.from());
  }
  if (line_) line_->look_again();
}

void Pipeline::decode(std::span<const Sample> samples,
                      std::span<const std::span<std::byte>> fields) {
  const TraceSpan trace(trace_, "decode");
  const Stopwatch stopwatch(figures_.decode_seconds());
  try {
    decode_all(samples, fields);
  } catch (const Error& error) {
    check_in_place();  // what has changed looks damaged
    watch_.fail_everywhere(error);
  }
  check_in_place();
}

void Pipeline::check_in_place() const {
  if (closed_) {
    throw Error(ErrorKind::usage, "nobody watches the data set any more: the loader was closed",
                "check samples before closing the loader", {.file = opened_.source.path});
  }
  try {
    if (reading_.in_place) reading_.in_place->check();
  } catch (const Error& error) {
    watch_.fail_everywhere(error);
  }
}

void Pipeline::decode_all(std::span<const Sample> samples,
                          std::span<const std::span<std::byte>> fields) const {
  const auto& schema = this->schema().fields;
  const bool fit = std::ranges::equal(fields, schema, [&](auto room, const Field& field) {
    return room.size() == samples.size() * field.bytes();
  });
  if (!fit) {
    throw Error(ErrorKind::usage,
                fmt::format("the arrays to decode into do not fit {} samples of {}", samples.size(),
                            to_string(this->schema())),
                "give one array a field of Loader::schema(), for all samples of the batch");
  }
  std::vector<std::span<std::byte>> of_sample(fields.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (std::size_t f = 0; f < fields.size(); ++f) {
      of_sample[f] = fields[f].subspan(i * schema[f].bytes(), schema[f].bytes());
    }
    decode_sample(*opened_.codec, samples[i], of_sample);
  }
}

// Batches that come decoded ----------------------------------------------------------------------

std::optional<Delivery> Pipeline::next_decoded() {
  auto lock = line_->lock();
  if (line_->empty()) {
    if (line_->failure()) watch_.fail_everywhere(*line_->failure());
    auto taken = take_now();
    if (!taken) return std::nullopt;
    line_->add(std::move(*taken));
  }
  return wait_for_decoding(lock);
}

Delivery Pipeline::wait_for_decoding(DecodeLine::Lock& lock) {
  const auto patience = opened_.options.patience_with_data();
  const Interval waited = watch_.wait(
      [&](std::chrono::milliseconds slice) { return line_->wait_decoded(lock, slice); }, patience,
      [&]() -> Error {
        watch_.fail_everywhere(Error(ErrorKind::communication,
                                     fmt::format("a batch is not decoded after {}", patience),
                                     "raise --timeout or --decode-threads"));
      });
  figures_.add_decode_wait(waited.end_ns - waited.begin_ns);
  if (trace_ != nullptr) trace_->add_span("wait for decoding", waited.begin_ns, waited.end_ns);
  try {
    return line_->pop();
  } catch (const Error& error) {
    watch_.fail_everywhere(error);
  }
}

std::optional<std::uint64_t> Pipeline::next_needs() {
  if (!feed_->next()) return std::nullopt;
  const auto end = feed_->end_of_next();
  return end && has_room(*end) ? end : std::nullopt;
}

Delivery Pipeline::take_next() { return take(*feed_->next()); }

bool Pipeline::published(std::uint64_t end) const { return end == 0 || stage_->published(end - 1); }

void Pipeline::wait_published(std::uint64_t end, std::chrono::milliseconds limit) {
  stage_->wait_published(end - 1, limit);
}

// Reports ----------------------------------------------------------------------------------------

const StridedOrder& Pipeline::order() const {
  if (plan_.map) return plan_.map->order();
  throw Error(ErrorKind::usage,
              fmt::format("order {} is not the strided one", to_string(opened_.options.order)),
              "ask batches and samples for epoch and position");
}

std::string Pipeline::explain() const {
  const LoaderOptions& options = opened_.options;
  std::string how = reading_.how;
  const std::string turns = figures_.reading()->get().turns;
  if (!reading_.turns.empty()) how += ", turns: " + (turns.empty() ? reading_.turns : turns);
  if (reading_.in_place) how += "; " + reading_.in_place->describe();
  std::string text = fmt::format(
      "{}; {} samples, batch {} over {} ranks, {}; {} buffers in {} of {} shared memory", how,
      entries(), options.batch, opened_.team.order_ranks, plan_.text, plan_.stage.buffers,
      format_bytes(options.stage_bytes == 0 ? plan_.stage.data_bytes
                                            : opened_.source.setup.stage_bytes),
      options.stage == SharedMemoryKind::mpi ? "MPI" : "POSIX");
  if (options.shard != Shard()) text += fmt::format("; shard {}", to_string(options.shard));
  if (line_) {
    text += fmt::format("; decoded by {} threads, {} batches ahead, in arrays of {}",
                        line_->pool().threads(), line_->ahead(),
                        format_bytes(opened_.decoding.arrays_bytes));
  }
  const CorePlan& cores = opened_.source.setup.cores;
  if (cores != CorePlan()) text += fmt::format("; {}", cores.explain());
  return text;
}

std::string Pipeline::plan(bool json) const {
  if (!reading_.outline) return {};
  return json ? to_json(*reading_.outline) : to_text(*reading_.outline);
}

std::string Pipeline::delivered_state() const {
  const auto lock = lock_order();
  RunState delivered = line_ ? line_->state() : state();
  const KnownStagger found = figures_.reading()->get().found;
  delivered.stagger = found == KnownStagger() ? opened_.options.known_stagger : found;
  return write_state(delivered);
}

LoaderWaits Pipeline::waits() const {
  const auto lock = lock_order();
  LoaderStatistics waits;
  data_.add_to(waits);
  feed_->add_to(waits);
  return {.data = waits.exposed_seconds,
          .decoding = figures_.decode_wait_seconds(),
          .ranks = waits.skew_seconds};
}

LoaderStatistics Pipeline::statistics() const {
  const auto lock = lock_order();
  LoaderStatistics all = figures_.all();
  data_.add_to(all);
  feed_->add_to(all);
  if (line_) all.decode_seconds += line_->pool().busy_seconds();
  return all;
}

}  // namespace forebay
