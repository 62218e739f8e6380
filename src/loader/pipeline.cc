#include "loader/pipeline.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/number_text.hpp"
#include "loader/shard.hpp"

namespace forebay {
namespace {

// Every wait looks up this often, for failures and for shutdown.
constexpr std::chrono::milliseconds kSlice{100};
// How long closing waits for a read in progress.
constexpr std::chrono::seconds kLongestGoodbye{4};

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

std::int64_t overlap(const Interval& a, const Interval& b) {
  return std::max<std::int64_t>(0, std::min(a.end_ns, b.end_ns) - std::max(a.begin_ns, b.begin_ns));
}

}  // namespace

Pipeline::Pipeline(const std::string& path, const LoaderOptions& options, Trace* trace)
    : path_(path),
      options_(options),
      trace_(trace),
      opened_ns_(now_ns()),
      usage_at_open_(process_usage()) {}

Pipeline::~Pipeline() { close(); }

// A batch that outlives its loader keeps its buffer: only what is not held is released here.
void Pipeline::close() {
  if (closed_) return;
  closed_ = true;
  if (line_) stop_decoding();
  if (reader_) reader_->stop(kLongestGoodbye);
  reader_.reset();
  data_.reset();
  if (!stage_) return;  // it was never open
  if (root_ >= 0) stage_->close_root(root_);
  if (held_.empty()) stage_->release_all(local_rank_);
}

void Pipeline::fail(const Error& error) {
  board_->fail(error);
  stage_->wake();
}

void Pipeline::check() {
  board_->poll();
  board_->check();
}

// What ends the loader of one rank ends all of them, with the failure that was published first.
void Pipeline::fail_everywhere(const Error& error) {
  const Error placed = error.within({.file = path_, .rank = order_rank()});
  fail(placed);
  board_->check();
  throw placed;
}

// The consumer -----------------------------------------------------------------------------------

std::optional<Delivery> Pipeline::next() {
  board_->check();
  auto delivery = line_ ? next_decoded() : take_now();
  if (delivery) count(*delivery);
  return delivery;
}

/// Waits for the data of the next batch.
std::optional<Delivery> Pipeline::take_now() {
  try {
    if (!more()) return std::nullopt;
  } catch (const Error& error) {
    fail_everywhere(error);
  }
  require_free_buffers();
  try {
    return take_next();
  } catch (const BatchesHeld&) {
    throw;
  } catch (const Error& error) {
    fail_everywhere(error);
  }
}

Delivery Pipeline::take_next() {
  const BatchPass pass = this->pass();
  Delivery delivery = take();
  delivery.pass = pass;
  delivery.iteration = iteration_++;
  delivery.epochs_done = epochs_done();
  held_.push_back({.iteration = delivery.iteration, .from = delivery.from});
  return delivery;
}

void Pipeline::count(const Delivery& delivery) {
  const auto lock = lock_order();
  if (figures_.batches++ == 0) figures_.first_batch_seconds = seconds(now_ns() - opened_ns_);
  delivered_epochs_ = delivery.epochs_done;
  figures_.samples += delivery.samples.size();
  for (const Sample& sample : delivery.samples) {
    figures_.bytes_delivered += sample.value.size();
    if (sample.repeat) ++figures_.repeated;
  }
  figures_.skipped += delivery.skipped.size();
  skipped_.add(path_, delivery.skipped);
}

void Pipeline::refuse_held_buffers() const {
  throw Error(ErrorKind::usage,
              fmt::format("all {} buffers hold batches that were not released", options_.buffers),
              "release batches before asking for the next, or raise buffers");
}

void Pipeline::ask_interrupt() {
  if (!interrupt_) return;
  try {
    interrupt_();
  } catch (...) {
    fail(Error(ErrorKind::cancelled, "the wait for data was interrupted", "",
               {.file = path_, .rank = comm_->rank()}));
    throw;
  }
}

void Pipeline::wait_for_data(std::uint64_t published) {
  Interval waited{.begin_ns = now_ns(), .end_ns = 0};
  const std::int64_t deadline =
      waited.begin_ns + std::chrono::nanoseconds(options_.patience_with_data()).count();
  while (!stage_->wait_published(published, kSlice)) {
    board_->poll();
    board_->check();
    ask_interrupt();
    if (now_ns() < deadline) continue;
    throw Error(
        ErrorKind::communication,
        fmt::format("no data for iteration {} after {}", iteration_, options_.patience_with_data()),
        "check the file system and the reading rank, or raise --timeout");
  }
  waited.end_ns = now_ns();
  account_wait(waited);
}

// Waiting while the root itself waits for a buffer means waiting for a slower rank; the rest of
// the wait is I/O that did not hide behind computing.
void Pipeline::account_wait(Interval waited) {
  const std::int64_t skew = overlap(waited, stage_->last_blocked());
  figures_.skew_seconds += seconds(skew);
  figures_.exposed_seconds += seconds(waited.end_ns - waited.begin_ns - skew);
  if (trace_ != nullptr) {
    trace_->add_span("wait for data", waited.begin_ns, waited.end_ns, iteration_);
  }
}

void Pipeline::release(std::uint64_t iteration) {
  const auto lock = lock_order();
  std::erase_if(held_, [iteration](const Held& held) { return held.iteration == iteration; });
  if (!held_.empty()) {
    let_go(held_.front().from);
  } else if (closed_) {
    stage_->release_all(local_rank_);
  } else {
    let_go(needed());
  }
  if (line_) line_->look_again();
}

void Pipeline::decode(std::span<const Sample> samples,
                      std::span<const std::span<std::byte>> fields) {
  const TraceSpan trace(trace_, "decode");
  const Stopwatch stopwatch(figures_.decode_seconds);
  try {
    require_room(samples.size(), fields);
    for (std::size_t i = 0; i < samples.size(); ++i) decode_one(samples[i], i, fields);
  } catch (const Error& error) {
    check_in_place();  // what has changed looks damaged
    fail_everywhere(error);
  }
  check_in_place();
}

void Pipeline::check_in_place() {
  if (closed_) {
    throw Error(ErrorKind::usage, "nobody watches the data set any more: the loader was closed",
                "check samples before closing the loader", {.file = path_});
  }
  try {
    data_->check_in_place();
  } catch (const Error& error) {
    fail_everywhere(error);
  }
}

void Pipeline::require_room(std::size_t samples,
                            std::span<const std::span<std::byte>> fields) const {
  const auto& schema = codec_->schema().fields;
  const bool fit = std::ranges::equal(fields, schema, [samples](auto room, const Field& field) {
    return room.size() == samples * field.bytes();
  });
  if (fit) return;
  throw Error(ErrorKind::usage,
              fmt::format("the arrays to decode into do not fit {} samples of {}", samples,
                          to_string(codec_->schema())),
              "give one array a field of Loader::schema(), for all samples of the batch");
}

void Pipeline::decode_one(const Sample& sample, std::size_t index,
                          std::span<const std::span<std::byte>> fields) const {
  const auto& schema = codec_->schema().fields;
  std::vector<std::span<std::byte>> of_sample(fields.size());
  for (std::size_t f = 0; f < fields.size(); ++f) {
    of_sample[f] = fields[f].subspan(index * schema[f].bytes(), schema[f].bytes());
  }
  decode_sample(*codec_, sample, of_sample);
}

// Reports ----------------------------------------------------------------------------------------

const StridedOrder& Pipeline::order() const {
  throw Error(ErrorKind::usage,
              fmt::format("order {} is not the strided one", to_string(options_.order)),
              "ask batches and samples for epoch and position");
}

std::string Pipeline::explain() const {
  std::string text = fmt::format(
      "{}; {} samples, batch {} over {} ranks, {}; {} buffers in {} of {} shared memory", how_,
      facts_.entries, options_.batch, order_ranks(), order_text(), options_.buffers,
      format_bytes(setup_.stage_bytes), options_.stage == SharedMemoryKind::mpi ? "MPI" : "POSIX");
  if (options_.shard != Shard()) text += fmt::format("; shard {}", to_string(options_.shard));
  if (line_) text += decoding_text();
  if (setup_.cores != CorePlan()) text += fmt::format("; {}", setup_.cores.explain());
  return text;
}

std::string Pipeline::plan(bool json) const {
  if (!outline_) return {};
  return json ? to_json(*outline_) : to_text(*outline_);
}

LoaderWaits Pipeline::waits() const {
  const auto lock = lock_order();
  return {.data = figures_.exposed_seconds,
          .decoding = figures_.exposed_decode_seconds,
          .ranks = figures_.skew_seconds};
}

LoaderStatistics Pipeline::statistics() const {
  const auto lock = lock_order();
  LoaderStatistics all = figures_;
  if (line_) all.decode_seconds += line_->pool().busy_seconds();
  const ReadTotals read = read_figures_->get();
  all.seek_seconds = seconds(read.seek_ns);
  all.read_seconds = seconds(read.read_ns);
  all.wait_seconds = seconds(read.wait_ns);
  all.turn_seconds = read.turn_seconds;
  all.missed_pages = read.missed_pages;
  all.redundant_pages = read.redundant_pages;
  all.decode_seconds += seconds(read.decode_ns);
  all.chunks_decoded = read.chunks_decoded;
  all.bytes_decoded = read.bytes_decoded;
  all.index_bytes = read.index_bytes;
  all.requests = read.source.requests;
  all.bytes_requested = read.source.bytes_requested;
  all.pages_visited = read.source.pages_visited;
  all.records_skipped = read.source.records_skipped;
  const ProcessUsage usage = process_usage() - usage_at_open_;
  all.voluntary_switches = usage.voluntary_switches;
  all.involuntary_switches = usage.involuntary_switches;
  all.minor_faults = usage.minor_faults;
  all.major_faults = usage.major_faults;
  all.busy_seconds = usage.user_seconds + usage.system_seconds;
  all.elapsed_seconds = seconds(now_ns() - opened_ns_);
  all.peak_resident_bytes = usage.peak_resident_bytes;
  all.private_bytes = usage.private_bytes;
  all.mapped_bytes = usage.mapped_bytes;
  return all;
}

}  // namespace forebay
