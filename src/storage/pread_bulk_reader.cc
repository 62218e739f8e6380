#include "storage/pread_bulk_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "storage/no_answer.hpp"

namespace forebay {
namespace {

// See docs/results/engines.md.
constexpr unsigned kDefaultDepth = 4;
constexpr unsigned kMaxDepth = 256;
constexpr std::uint64_t kDefaultPiece = std::uint64_t{1} << 20;

bool may_give_up(const BulkOptions& options) {
  return options.timeout.count() > 0 || options.stop.stop_possible();
}

}  // namespace

PreadBulkReader::PreadBulkReader(std::shared_ptr<const File> file, const BulkOptions& options)
    : file_(std::move(file)),
      depth_(options.depth == 0 ? kDefaultDepth : std::min(options.depth, kMaxDepth)),
      piece_bytes_(options.request_bytes == 0 ? kDefaultPiece : options.request_bytes) {
  if (depth_ == 1 && !may_give_up(options)) return;
  crew_ = std::make_shared<ReadCrew>(file_, options);
  for (unsigned i = 0; i < depth_; ++i) {
    threads_.emplace_back(fmt::format("fb-io-{}", i), Placement{},
                          [crew = crew_](const std::stop_token& stop) { crew->work(stop); });
  }
}

PreadBulkReader::~PreadBulkReader() {
  if (!abandoned_) return;
  for (HelperThread& thread : threads_) thread.abandon();
}

void PreadBulkReader::read(std::span<const ReadRequest> requests, const Done& done) {
  if (abandoned_) throw abandoned_error(file_->path());
  require_possible(requests, *file_);
  if (crew_) {
    read_by_crew(requests, done);
  } else {
    read_here(requests, done);
  }
}

void PreadBulkReader::read_here(std::span<const ReadRequest> requests, const Done& done) {
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

void PreadBulkReader::read_by_crew(std::span<const ReadRequest> requests, const Done& done) {
  crew_->begin(requests, piece_bytes_);
  try {
    while (true) {
      const auto finished = crew_->next_finished();
      if (finished.empty()) break;
      for (const std::size_t index : finished) done(index);
    }
  } catch (...) {
    abandoned_ = !crew_->end();
    crew_->rethrow_error();
    throw;
  }
}

BulkCounters PreadBulkReader::counters() const { return crew_ ? crew_->counters() : counters_; }

std::string PreadBulkReader::describe() const {
  return fmt::format("pread, {} at once of {}", depth_, size_text(piece_bytes_));
}

}  // namespace forebay
