#include "storage/pread_bulk_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "storage/no_answer.hpp"

namespace forebay {
namespace {

// See docs/results/engines.md.
constexpr unsigned kDefaultDepth = 4;
constexpr unsigned kScatteredDepth = 16;
constexpr unsigned kMaxDepth = 256;
constexpr std::uint64_t kDefaultPiece = std::uint64_t{1} << 20;

bool may_give_up(const BulkOptions& options) {
  return options.timeout.count() > 0 || options.stop.stop_possible();
}

unsigned depth_of(const BulkOptions& options) {
  if (options.depth == 0) return options.scattered ? kScatteredDepth : kDefaultDepth;
  return std::min(options.depth, kMaxDepth);
}

}  // namespace

PreadBulkReader::PreadBulkReader(std::shared_ptr<const File> file, const BulkOptions& options)
    : file_(std::move(file)),
      depth_(depth_of(options)),
      piece_bytes_(options.request_bytes == 0 ? kDefaultPiece : options.request_bytes) {
  if (depth_ == 1 && !may_give_up(options)) return;
  crew_ = std::make_shared<ReadCrew>(file_, options);
  for (unsigned i = 0; i < depth_; ++i) {
    threads_.emplace_back(fmt::format("fb-io-{}", i), options.placement,
                          [crew = crew_](const std::stop_token& stop) { crew->work(stop); });
  }
}

PreadBulkReader::~PreadBulkReader() {
  cancel();
  if (!abandoned_) return;
  for (HelperThread& thread : threads_) thread.abandon();
}

void PreadBulkReader::start(std::span<const ReadRequest> requests) {
  if (abandoned_) throw abandoned_error(file_->path());
  require_possible(requests, *file_);
  started_ = requests;
  if (crew_) crew_->begin(requests, piece_bytes_);
}

void PreadBulkReader::finish(const Done& done) {
  if (!crew_) return read_here(done);
  try {
    while (!started_.empty()) {
      const auto finished = next_finished();
      if (finished.empty()) break;
      for (const std::size_t index : finished) done(index);
    }
    started_ = {};
  } catch (...) {
    cancel();
    throw;
  }
}

std::vector<std::size_t> PreadBulkReader::next_finished() {
  try {
    return crew_->next_finished();
  } catch (...) {
    cancel();
    crew_->rethrow_error();
    throw;
  }
}

void PreadBulkReader::cancel() noexcept {
  const bool reading = !std::exchange(started_, {}).empty();
  if (reading && crew_ && !crew_->end()) abandoned_ = true;
}

void PreadBulkReader::read_here(const Done& done) {
  const auto requests = std::exchange(started_, {});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    RequestSplitter pieces(requests.subspan(i, 1), piece_bytes_);
    while (!pieces.empty()) {
      const ReadPiece piece = pieces.next();
      ++counters_.requests;
      file_->read(piece.offset, piece.into);
      counters_.bytes += piece.into.size();
    }
    done(i);
  }
}

BulkCounters PreadBulkReader::counters() const { return crew_ ? crew_->counters() : counters_; }

std::string PreadBulkReader::describe() const {
  return fmt::format("pread, {} at once of {}", depth_, size_text(piece_bytes_));
}

}  // namespace forebay
