// One slot for each request in flight; its number is the user_data of the submission.
//
//   pieces -> free slot -> kernel -> answer: all there   -> slot is free, request may be finished
//                             ^        |    some there   -> the rest is submitted again
//                             +--------+    interrupted  -> submitted again
//                                           refused      -> error, the others are cancelled
//
// Who copies. A buffered read of cached pages that the submitting thread issues is copied by that
// thread, one after another: one core's copying speed, whatever the depth. Marked IOSQE_ASYNC it
// goes to kernel threads (io-wq), which copy side by side. The hand-over costs some microseconds,
// so small reads stay with the submitting thread, which waits for missing pages asynchronously.
//
// Registered buffers spare the kernel the pinning of pages, which buffered reads do not do and
// which was not measurable for direct ones of this size (docs/results/engines.md): not used.
#include "storage/uring_bulk_reader.hpp"

#include <cerrno>

#include "forebay/error.hpp"

#ifdef FOREBAY_URING

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "storage/file_error.hpp"
#include "storage/joined_file.hpp"
#include "storage/request_splitter.hpp"
#include "storage/stripes.hpp"
#include "storage/uring_ring.hpp"

namespace forebay {
namespace {

// See docs/results/engines.md.
constexpr unsigned kDefaultDepth = 16;
constexpr unsigned kScatteredDepth = 128;
constexpr unsigned kMaxDepth = 1024;
constexpr std::uint64_t kDefaultPiece = std::uint64_t{1} << 20;
constexpr std::uint64_t kWorkerBytes = std::uint64_t{128} << 10;

constexpr std::uint64_t kCancellation = std::uint64_t{1} << 63;
// A wait looks this often at the stop token, and how long it has been.
constexpr std::chrono::milliseconds kSlice{100};
constexpr std::chrono::milliseconds kLongNap{3'600'000};
constexpr int kMaxRepeats = 1000;

class UringBulkReader final : public BulkReader {
 public:
  /// `file` has descriptors.
  UringBulkReader(std::shared_ptr<const File> file, const BulkOptions& options);

  ~UringBulkReader() override { cancel(); }

  void start(std::span<const ReadRequest> requests) override;
  void finish(const Done& done) override;
  void advance() override;
  void cancel() noexcept override;
  BulkCounters counters() const override { return counters_; }
  bool abandoned() const override { return abandoned_; }
  std::string describe() const override;

 private:
  struct Slot {
    ReadPiece rest;                    // what is still missing
    std::shared_ptr<const File> file;  // stays open for it
    int repeats = 0;                   // answers in a row that brought nothing
    bool busy = false;
  };

  void begin(std::span<const ReadRequest> requests);
  void submit_pieces();
  void prepare(std::size_t slot);
  void collect();
  void take(const RingAnswer& answer);
  void take_bytes(Slot& slot, std::uint64_t count);
  void take_refusal(Slot& slot, int error);
  void report(const Done& done);
  bool cancel_all() noexcept;
  std::optional<RingAnswer> next_answer(bool stop_ends_it);

  std::shared_ptr<const File> file_;
  BulkOptions options_;
  DirectFile direct_;
  std::optional<Ring> ring_;
  bool files_are_registered_ = false;
  bool abandoned_ = false;
  BulkCounters counters_;

  RequestSplitter pieces_;
  std::vector<std::uint64_t> missing_;  // bytes, by request
  std::vector<std::size_t> finished_;   // requests that the caller has not heard of
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;
  std::size_t in_flight_ = 0;
  std::chrono::milliseconds patience_;  // with one answer; 0 = no end
};

UringBulkReader::UringBulkReader(std::shared_ptr<const File> file, const BulkOptions& options)
    : file_(std::move(file)), options_(options), patience_(options.timeout) {
  if (options_.depth == 0) options_.depth = options_.scattered ? kScatteredDepth : kDefaultDepth;
  options_.depth = std::min(options_.depth, kMaxDepth);
  if (options_.request_bytes == 0)
    options_.request_bytes = request_bytes_for(*file_, kDefaultPiece);
  const int alone = file_->descriptor();
  if (options_.direct && alone >= 0) direct_.open(alone, file_->path());
  slots_.resize(options_.depth);
  for (std::size_t i = slots_.size(); i > 0; --i) free_.push_back(i - 1);
  ring_.emplace(options_.depth);
  if (alone < 0) return;
  const int descriptors[] = {alone, direct_.get()};
  files_are_registered_ =
      ring_->register_files(std::span(descriptors).first(direct_.usable() ? 2 : 1));
}

void UringBulkReader::start(std::span<const ReadRequest> requests) {
  if (abandoned_) throw abandoned_error(file_->path());
  require_possible(requests, *file_);
  begin(requests);
  try {
    submit_pieces();
  } catch (...) {
    cancel();
    throw;
  }
}

void UringBulkReader::finish(const Done& done) {
  try {
    while (true) {
      submit_pieces();  // before `done`, which may take its time
      report(done);
      if (in_flight_ == 0) break;
      collect();
    }
  } catch (...) {
    cancel();
    throw;
  }
}

void UringBulkReader::advance() {
  if (in_flight_ == 0) return;
  try {
    while (const auto answer = ring_->take()) take(*answer);
    submit_pieces();
  } catch (...) {
    cancel();
    throw;
  }
}

void UringBulkReader::cancel() noexcept {
  if (abandoned_ || cancel_all()) return;
  abandoned_ = true;
  note_left_requests();
}

void UringBulkReader::begin(std::span<const ReadRequest> requests) {
  missing_.clear();
  finished_.clear();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    missing_.push_back(requests[i].into.size());
    if (requests[i].into.empty()) finished_.push_back(i);
  }
  pieces_ = RequestSplitter(requests, options_.request_bytes, direct_.rules(), file_.get());
  patience_ = options_.timeout;
}

void UringBulkReader::submit_pieces() {
  while (!free_.empty() && !pieces_.empty()) {
    const std::size_t slot = free_.back();
    slots_[slot] = {.rest = pieces_.next(), .file = nullptr, .repeats = 0, .busy = true};
    prepare(slot);
    free_.pop_back();
    ++in_flight_;
  }
  ring_->submit();
}

void UringBulkReader::prepare(std::size_t slot) {
  ReadPiece& piece = slots_[slot].rest;
  piece.direct = piece.direct && direct_.usable();
  io_uring_sqe& entry = ring_->entry();
  const FilePlace place = resolve(file_, piece.offset);
  const int descriptor = piece.direct ? direct_.get() : place.file->descriptor();
  ::io_uring_prep_read(&entry, files_are_registered_ ? int{piece.direct} : descriptor,
                       piece.into.data(), static_cast<unsigned>(piece.into.size()), place.offset);
  if (files_are_registered_) entry.flags |= IOSQE_FIXED_FILE;
  const bool copied = !piece.direct && piece.into.size() >= kWorkerBytes;
  if (copied || slots_[slot].repeats > 0) entry.flags |= IOSQE_ASYNC;
  entry.user_data = slot;
  slots_[slot].file = place.file;
  ++counters_.requests;
}

void UringBulkReader::collect() {
  if (options_.stop.stop_requested()) throw stopped_error(file_->path());
  auto answer = next_answer(true);
  if (!answer && options_.stop.stop_requested()) throw stopped_error(file_->path());
  if (!answer) {
    const auto waiting = std::ranges::find(slots_, true, &Slot::busy);
    patience_ = std::min(patience_, kCancelGrace);  // of what follows: the cancelling
    const FilePlace place = resolve(file_, waiting->rest.offset);
    throw no_answer_error(place.file->path(), place.offset, options_.timeout);
  }
  while (answer) {
    take(*answer);
    answer = ring_->take();
  }
}

void UringBulkReader::take(const RingAnswer& answer) {
  Slot& slot = slots_[answer.user_data];
  // Whatever happens below, the kernel has let go of this slot.
  slot.busy = false;
  free_.push_back(answer.user_data);
  --in_flight_;
  if (answer.result > 0) {
    take_bytes(slot, static_cast<std::uint64_t>(answer.result));
  } else {
    take_refusal(slot, -answer.result);
  }
  if (slot.rest.into.empty()) return slot.file.reset();
  prepare(answer.user_data);
  slot.busy = true;
  free_.pop_back();
  ++in_flight_;
}

void UringBulkReader::take_bytes(Slot& slot, std::uint64_t count) {
  ReadPiece& rest = slot.rest;
  counters_.bytes += count;
  missing_[rest.request] -= count;
  if (missing_[rest.request] == 0) finished_.push_back(rest.request);
  rest.offset += count;
  rest.into = rest.into.subspan(count);
  // A direct read that ended between blocks cannot go on as one.
  rest.direct =
      rest.direct && direct_.usable() && rest.offset % direct_.rules().offset_alignment == 0;
  slot.repeats = 0;
}

// Returns when the read is worth another try.
void UringBulkReader::take_refusal(Slot& slot, int error) {
  ReadPiece& rest = slot.rest;
  const FilePlace place = resolve(file_, rest.offset);
  const std::string& path = place.file->path();
  if (error == 0) {
    throw end_of_file_error(path, place.offset, rest.into.size(), place.file->size());
  }
  if (rest.direct && (error == EINVAL || error == EOPNOTSUPP)) {
    if (direct_.usable()) direct_.refuse(path, error);
    return;
  }
  const bool may_pass = error == EINTR || error == EAGAIN;
  if (!may_pass || ++slot.repeats > kMaxRepeats) {
    throw read_error(path, place.offset, error);
  }
}

void UringBulkReader::report(const Done& done) {
  for (const std::size_t index : std::exchange(finished_, {})) done(index);
}

// True once nothing is in flight. What cannot be cancelled any more is waited for.
bool UringBulkReader::cancel_all() noexcept {
  pieces_ = {};
  finished_.clear();
  if (in_flight_ == 0) return true;
  try {
    std::size_t unanswered = in_flight_;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (!slots_[i].busy) continue;
      io_uring_sqe& entry = ring_->entry();
      ::io_uring_prep_cancel64(&entry, i, 0);
      entry.user_data = kCancellation;
      ++unanswered;
    }
    ring_->submit();
    for (; unanswered > 0; --unanswered) {
      const auto answer = next_answer(false);
      if (!answer) return false;
      if (answer->user_data == kCancellation) continue;
      slots_[answer->user_data].busy = false;
      free_.push_back(answer->user_data);
      --in_flight_;
    }
    return true;
  } catch (...) {
    return false;  // the ring itself failed: what it does with the rest is not known
  }
}

// Sleeps until the kernel has answered; nothing after the timeout or a stop.
std::optional<RingAnswer> UringBulkReader::next_answer(bool stop_ends_it) {
  using Milliseconds = std::chrono::milliseconds;
  WaitedTime looks;
  while (true) {
    if (const auto answer = ring_->take()) return answer;
    looks.step();
    const auto waited = std::chrono::duration_cast<Milliseconds>(looks.total());
    const bool stopped = options_.stop.stop_requested();
    if (stopped && (stop_ends_it || waited >= kStopGrace)) return std::nullopt;
    const Milliseconds timeout = patience_;
    if (timeout.count() > 0 && waited >= timeout) return std::nullopt;
    const bool forever = timeout.count() == 0;
    Milliseconds nap = forever && !options_.stop.stop_possible() ? kLongNap : kSlice;
    if (!forever) nap = std::min(nap, timeout - waited);
    ring_->wait(nap);
  }
}

std::string UringBulkReader::describe() const {
  return fmt::format("uring, {} in flight of {}{}", options_.depth,
                     size_text(options_.request_bytes),
                     direct_.usable() ? ", past the page cache" : "");
}

}  // namespace

std::unique_ptr<BulkReader> make_uring_reader(std::shared_ptr<const File> file,
                                              const BulkOptions& options, const UringProbe& probe) {
  const Where where{.file = file->path()};
  if (!file->has_descriptors()) {
    throw Error(ErrorKind::unsupported, "io_uring reads files of the operating system only",
                "use '--engine pread'", where);
  }
  if (const int error = probe(); error != 0) {
    throw Error(ErrorKind::unsupported, uring_refusal(error), "use '--engine pread'", where);
  }
  return std::make_unique<UringBulkReader>(std::move(file), options);
}

}  // namespace forebay

#else  // what stands in for io_uring where Forebay is built without liburing

namespace forebay {

int probe_uring() { return ENOSYS; }

std::unique_ptr<BulkReader> make_uring_reader(std::shared_ptr<const File> file, const BulkOptions&,
                                              const UringProbe&) {
  throw Error(ErrorKind::unsupported, "Forebay was built without liburing",
              "use '--engine pread', or build it again with liburing installed",
              Where{.file = file->path()});
}

}  // namespace forebay

#endif
