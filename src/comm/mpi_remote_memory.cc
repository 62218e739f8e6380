#include "comm/mpi_remote_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "comm/mpi_two_sided.hpp"
#include "comm/posix_shared_memory.hpp"
#include "comm/values.hpp"
#include "comm/waiting.hpp"
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

namespace {

constexpr std::size_t kPage = 4096;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack

/// Parts begin at pages, so that each lies in the memory of the core that fills it.
std::size_t part_bytes(std::uint64_t bytes) {
  return (MpiWindow::kHead + bytes + kPage - 1) / kPage * kPage;
}

/// A window of all ranks, or the reason of the first one that has none. Collective.
template <typename Make>
std::shared_ptr<MpiWindow> try_window(MpiCommunicator& comm, std::string& fault, Make make) {
  std::shared_ptr<MpiWindow> window;
  std::string mine;
  comm.barrier();  // what follows blocks inside MPI
  try {
    window = std::make_shared<MpiWindow>(make());
  } catch (const Error& error) {
    mine = error.happened();
  }
  if (everywhere(comm, window != nullptr)) return window;
  if (window) window->leak();
  const auto faulty = gather_all(comm, std::uint8_t{mine.empty()});
  const auto first = std::ranges::find(faulty, 0) - faulty.begin();
  fault = broadcast_text(comm, mine, static_cast<int>(first));
  return nullptr;
}

// Where "nodes" are one machine in truth, MPI takes its windows from /dev/shm, and takes no pages
// before they are touched: who touches the first that is missing would die of SIGBUS.
void back(std::span<std::byte> memory) {
  if (memory.empty()) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t begin = first / page * page;
  const std::uintptr_t end = (first + memory.size() + page - 1) / page * page;
  const std::uint64_t free = free_shared_memory();
  int status = 0;
  do {
    status = madvise(memory.data() - (first - begin), end - begin, kPopulateWrite);
  } while (status != 0 && errno == EINTR);
  // Kernels before 5.14 cannot tell (EINVAL).
  if (status == 0 || (errno != EFAULT && errno != ENOMEM)) return;
  throw Error(ErrorKind::io,
              fmt::format("shared memory is full: {} more bytes are needed, {} are free",
                          end - begin, free),
              "make /dev/shm larger (mount -o remount,size=...), or hold less");
}

}  // namespace

MpiRemoteMemory::MpiRemoteMemory(std::shared_ptr<MpiCommunicator> comm, Communicator& node,
                                 std::size_t bytes, SharedMemoryKind kind)
    : comm_(std::move(comm)), sizes_(gather_all(*comm_, std::uint64_t{bytes})) {
  direct_.resize(sizes_.size());
  const auto node_sizes = gather_all(*comm_, node.size());
  several_nodes_ = node.size() < comm_->size();
  const bool alone = std::ranges::all_of(node_sizes, [](int size) { return size == 1; });
  if (several_nodes_ && alone && kind == SharedMemoryKind::mpi) allocate_for_all();
  if (!window_) {
    share_on_node(node, kind);
    if (several_nodes_) open_to_other_nodes();
  }
  direct_[static_cast<std::size_t>(comm_->rank())] = mine_;
}

// MPI may still let others into a window that stays, and looks at it when it ends.
MpiRemoteMemory::~MpiRemoteMemory() {
  if (window_ && !window_->free_with_others()) static_cast<void>(shared_.release());
}

void MpiRemoteMemory::allocate_for_all() {
  const std::size_t bytes = sizes_[static_cast<std::size_t>(comm_->rank())];
  window_ = try_window(*comm_, window_fault_,
                       [&] { return MpiWindow::allocate(comm_->handle(), bytes, 0); });
  if (window_) mine_ = window_->bytes();
}

void MpiRemoteMemory::share_on_node(Communicator& node, SharedMemoryKind kind) {
  const auto ranks = gather_all(node, comm_->rank());
  std::vector<std::size_t> begin(ranks.size() + 1, 0);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    begin[i + 1] = begin[i] + part_bytes(sizes_[static_cast<std::size_t>(ranks[i])]);
  }
  shared_ = node.share(begin.back(), kind);
  const auto me = static_cast<std::size_t>(node.rank());
  begin_ = begin[me];
  const std::size_t part = begin[me + 1] - begin_;
  collectively(*comm_,
               [&] { shared_->reserve(begin_, std::min(part, MpiWindow::kHead + kBackedBytes)); });
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto rank = static_cast<std::size_t>(ranks[i]);
    direct_[rank] = shared_->bytes().subspan(begin[i] + MpiWindow::kHead, sizes_[rank]);
  }
  const std::size_t bytes = sizes_[static_cast<std::size_t>(comm_->rank())];
  room_ = shared_->bytes().subspan(begin_, MpiWindow::kHead + bytes);
  mine_ = room_.subspan(MpiWindow::kHead);
}

void MpiRemoteMemory::reserve(std::size_t offset, std::size_t size) {
  if (shared_) return shared_->reserve(begin_ + MpiWindow::kHead + offset, size);
  back(mine_.subspan(offset, size));
}

void MpiRemoteMemory::open_to_other_nodes() {
  window_fault_.clear();
  window_ =
      try_window(*comm_, window_fault_, [&] { return MpiWindow::over(comm_->handle(), room_); });
}

std::span<const std::byte> MpiRemoteMemory::direct(int rank) const {
  return direct_[static_cast<std::size_t>(rank)];
}

void MpiRemoteMemory::publish() {
  if (window_) check_mpi(MPI_Win_sync(window_->handle()), "MPI_Win_sync");
}

std::unique_ptr<RemoteReader> MpiRemoteMemory::make_reader(Transport transport, std::string& why) {
  if (!comm_->concurrent()) {
    why = "MPI grants less than MPI_THREAD_MULTIPLE";
    return nullptr;
  }
  if (transport == Transport::one_sided && !window_) {
    why = "MPI makes no window (" + window_fault_ + ")";
    return nullptr;
  }
  auto comm = std::static_pointer_cast<MpiCommunicator>(comm_->split(0, comm_->rank()));
  if (transport == Transport::one_sided) {
    return std::make_unique<MpiOneSidedReader>(std::move(comm), window_);
  }
  const bool short_ones = transport == Transport::two_sided_short;
  return std::make_unique<MpiTwoSidedReader>(
      std::move(comm), mine_, short_ones ? MpiTwoSidedReader::kShortMessage : kLongestMessage);
}

std::string MpiRemoteMemory::describe() const {
  if (!several_nodes_) return "shared memory of one node";
  if (!shared_) return "windows that MPI allocates";
  return window_ ? "windows over the shared memory of each node" : "shared memory of each node";
}

}  // namespace forebay
