#include "comm/mpi_one_sided.hpp"

#include <fmt/format.h>

#include "comm/brisk_waiting.hpp"
#include "comm/mpi_error.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

// What is under way at once: enough to hide the latency of a network, and little enough for
// libraries that keep a list of it.
constexpr std::size_t kBatchPieces = 512;
constexpr std::size_t kBatchBytes = std::size_t{64} << 20;
// One marker in so many pieces or bytes, to see that something comes.
constexpr std::size_t kMarkEvery = 16;
constexpr std::size_t kMarkBytes = std::size_t{256} << 10;
// How long reads that are under way may take once this rank wants them no more.
constexpr std::chrono::seconds kLongestSettling{2};
// Words to owners.
constexpr std::byte kBegin{1};
constexpr std::byte kEnd{2};

}  // namespace

MpiOneSidedReader::MpiOneSidedReader(std::shared_ptr<MpiCommunicator> comm,
                                     std::shared_ptr<MpiWindow> window)
    : comm_(std::move(comm)), window_(std::move(window)) {
  comm_->carry_messages();
}

void MpiOneSidedReader::tell_owners(std::byte word) {
  for (const int owner : batch_->owners) comm_->send_notice(owner, std::span(&word, 1));
}

void MpiOneSidedReader::start(std::span<const RemotePiece> pieces) {
  if (broken_) throw Error(ErrorKind::cancelled, "an earlier read of other ranks' memory failed");
  pieces_.assign(pieces.begin(), pieces.end());
  begun_ = 0;
  begin_batch();
}

std::size_t MpiOneSidedReader::batch_end() const {
  std::size_t end = begun_;
  for (std::size_t bytes = 0;
       end < pieces_.size() && end - begun_ < kBatchPieces && bytes < kBatchBytes; ++end) {
    bytes += pieces_[end].to.size();
  }
  return end;
}

void MpiOneSidedReader::begin_batch() {
  const std::size_t end = batch_end();
  batch_->markers.clear();
  batch_->owners.clear();
  std::size_t unmarked = 0;
  std::size_t unmarked_bytes = 0;
  for (; begun_ < end; ++begun_) {
    const RemotePiece& piece = pieces_[begun_];
    const bool last = begun_ + 1 == end || pieces_[begun_ + 1].owner != piece.owner;
    const auto count = static_cast<int>(piece.to.size());
    const MPI_Aint offset = MpiWindow::displacement(piece.offset);
    unmarked_bytes += piece.to.size();
    if (!last && ++unmarked < kMarkEvery && unmarked_bytes < kMarkBytes) {
      check_mpi(MPI_Get(piece.to.data(), count, MPI_BYTE, piece.owner, offset, count, MPI_BYTE,
                        window_->handle()),
                "MPI_Get");
      continue;
    }
    unmarked = unmarked_bytes = 0;
    if (last) batch_->owners.push_back(piece.owner);
    check_mpi(MPI_Rget(piece.to.data(), count, MPI_BYTE, piece.owner, offset, count, MPI_BYTE,
                       window_->handle(), &batch_->markers.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Rget");
  }
  tell_owners(kBegin);
}

void MpiOneSidedReader::wait_for_markers(const WaitPolicy& policy) {
  const std::string what = fmt::format("samples of rank {}{}", batch_->owners.front(),
                                       batch_->owners.size() > 1 ? " and others" : "");
  auto& markers = batch_->markers;
  std::vector<int> which(markers.size());
  for (;;) {
    BriskWaiting waiting(policy, what);
    for (int count = 0; count == 0;) {
      check_mpi(MPI_Testsome(static_cast<int>(markers.size()), markers.data(), &count, which.data(),
                             MPI_STATUSES_IGNORE),
                "MPI_Testsome");
      if (count == MPI_UNDEFINED) return;  // none is left
      if (count == 0) waiting.step();
    }
  }
}

void MpiOneSidedReader::end_batch(const WaitPolicy& policy) {
  if (batch_->owners.empty()) return;
  wait_for_markers(policy);
  if (batch_->owners.size() == 1) {
    check_mpi(MPI_Win_flush(batch_->owners.front(), window_->handle()), "MPI_Win_flush");
  } else {
    check_mpi(MPI_Win_flush_all(window_->handle()), "MPI_Win_flush_all");
  }
  tell_owners(kEnd);
}

void MpiOneSidedReader::finish(const WaitPolicy& policy) {
  try {
    for (end_batch(policy); begun_ < pieces_.size(); end_batch(policy)) begin_batch();
  } catch (...) {
    give_up();
    throw;
  }
}

// MPI knows no way to take a read back, but when it was another rank that has failed, what was
// asked for mostly comes: only where it does not, may MPI still write there at the end of the
// process.
void MpiOneSidedReader::give_up() {
  broken_ = true;
  try {
    end_batch({.timeout = kLongestSettling, .interrupt = {}});
  } catch (const Error&) {
    quiet_ = false;
    static_cast<void>(batch_.release());
    batch_ = std::make_unique<Batch>();
    set_mpi_gave_up();
  }
}

bool MpiOneSidedReader::serve() {
  while (const auto word = comm_->poll_notice()) {
    for (const std::byte value : *word) readers_ += value == kBegin ? 1 : -1;
  }
  return readers_ > 0;
}

}  // namespace forebay
