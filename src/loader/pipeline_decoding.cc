// The decoding side of a Pipeline: its memory, its threads, and what the consumer waits for.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/number_text.hpp"
#include "loader/pipeline.hpp"

namespace forebay {
namespace {

// Every wait looks up this often, for failures of other ranks.
constexpr std::chrono::milliseconds kSlice{100};
// More do not help: then it is the memory that is busy, and the consumer has work for cores too.
constexpr unsigned kMostThreads = 8;

}  // namespace

/// Every rank's consumer holds one batch; what is decoded ahead is as much as half of the stage's
/// memory has room for.
void Pipeline::plan_decoding() {
  collectively(*comm_, [&] {
    const auto ranks = static_cast<std::uint64_t>(order_ranks());
    const std::uint64_t share = (options_.batch + ranks - 1) / ranks;
    const std::uint64_t one = std::max<std::uint64_t>(
        DecodedArrays::bytes_of(codec_->schema(), share), 1);  // of one rank
    const auto sharing = static_cast<std::uint64_t>(group_->size());
    const std::uint64_t fitting = setup_.stage_bytes / 2 / sharing / one;
    if (fitting == 0) {
      throw Error(ErrorKind::usage,
                  fmt::format("decoded batches of {} ranks, of {} bytes each, exceed half of the "
                              "stage's {} bytes",
                              sharing, one, setup_.stage_bytes),
                  "raise --stage-bytes, or lower --batch", {.file = path_});
    }
    decode_ahead_ =
        static_cast<unsigned>(std::min<std::uint64_t>(options_.decode_ahead, fitting - 1));
    arrays_bytes_ = (decode_ahead_ + 1) * one * sharing;
  });
  if (decode_ahead_ == options_.decode_ahead || local_rank_ != 0) return;
  log(LogLevel::info, "{} instead of {} batches are decoded ahead: more do not fit half of {}",
      decode_ahead_, options_.decode_ahead, format_bytes(setup_.stage_bytes));
}

std::uint64_t Pipeline::budget_beside_arrays() const { return setup_.stage_bytes - arrays_bytes_; }

void Pipeline::start_decoding() {
  collectively(*comm_, [&] {
    const Placement placement = placement_of(Component::decode);
    const unsigned threads =
        choose_workers(options_.decode_threads, placement, node_->size(), kMostThreads);
    auto pool = std::make_unique<DecodePool>(codec_, options_.undecodable, threads,
                                             std::size_t{decode_ahead_} + 1, placement,
                                             [&data = *data_] { data.check_in_place(); });
    BatchSource& source = *this;
    line_ = std::make_unique<DecodeLine>(std::move(pool), source, decode_ahead_, trace_);
    line_->start(placement);
  });
}

// Batches that the consumer has not got hold nothing any more.
void Pipeline::stop_decoding() {
  stage_->wake();
  line_->stop();
  const auto lock = line_->lock();
  for (; !line_->empty(); held_.pop_back()) line_->drop_last();
}

std::string Pipeline::decoding_text() const {
  return fmt::format("; decoded by {} threads, {} batches ahead, in arrays of {}",
                     line_->pool().threads(), line_->ahead(), format_bytes(arrays_bytes_));
}

DecodeLine::Lock Pipeline::lock_order() const { return line_ ? line_->lock() : DecodeLine::Lock(); }

std::string Pipeline::delivered_state() const {
  const auto lock = lock_order();
  return write_state(line_ ? line_->state() : state());
}

std::optional<Delivery> Pipeline::next_decoded() {
  auto lock = line_->lock();
  if (line_->empty()) {
    if (line_->failure()) fail_everywhere(*line_->failure());
    auto taken = take_now();
    if (!taken) return std::nullopt;
    line_->add(std::move(*taken));
  }
  return wait_for_decoding(lock);
}

Delivery Pipeline::wait_for_decoding(DecodeLine::Lock& lock) {
  const std::int64_t begin = now_ns();
  const std::int64_t deadline =
      begin + std::chrono::nanoseconds(options_.patience_with_data()).count();
  while (!line_->wait_decoded(lock, kSlice)) {
    board_->poll();
    board_->check();
    ask_interrupt();
    if (now_ns() < deadline) continue;
    fail_everywhere(
        Error(ErrorKind::communication,
              fmt::format("a batch is not decoded after {}", options_.patience_with_data()),
              "raise --timeout or --decode-threads"));
  }
  const std::int64_t end = now_ns();
  figures_.exposed_decode_seconds += static_cast<double>(end - begin) * 1e-9;
  if (trace_ != nullptr) trace_->add_span("wait for decoding", begin, end);
  try {
    return line_->pop();
  } catch (const Error& error) {
    fail_everywhere(error);
  }
}

// What the line's thread asks for -----------------------------------------------------------------

// Held batches keep their buffers from being filled, those in the line among them.
std::optional<std::uint64_t> Pipeline::next_needs() {
  if (!more()) return std::nullopt;
  const auto end = needed_end();
  if (!end) return std::nullopt;
  const std::uint64_t oldest = held_.empty() ? needed() : held_.front().from;
  const std::uint64_t coalesce = stage_->shape().coalesce;
  const auto buffers = static_cast<std::uint64_t>(options_.buffers);
  if (*end > oldest && (*end - 1) / coalesce >= oldest / coalesce + buffers) return std::nullopt;
  return end;
}

bool Pipeline::published(std::uint64_t end) const { return end == 0 || stage_->published(end - 1); }

void Pipeline::wait_published(std::uint64_t end, std::chrono::milliseconds limit) {
  stage_->wait_published(end - 1, limit);
}

}  // namespace forebay
