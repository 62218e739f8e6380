// RemoteMemory over MPI.
//
// Where ranks share a node, their parts lie in one shared segment of it (Communicator::share: MPI's
// or POSIX), and a second window over this rank's part serves the other nodes. Where every node has
// one rank only, the memory is a window that MPI allocates for all: Open MPI reads those up to 5
// times faster than windows over memory that exists.
//
// A window may be refused, on one rank or all; then the memory is as good as before for its node,
// and for the two-sided transport.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/messages.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/mpi/window.hpp"
#include "comm/posix_shared_memory.hpp"
#include "comm/remote_memory.hpp"
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
// Of the two-sided reader: MPI sends it at once, where a longer one waits for its receiver's word.
constexpr std::size_t kShortMessage = std::size_t{16} << 10;

// RemoteReader without the owner's help: MPI_Get inside of one passive epoch.
//
//   batch of pieces --> MPI_Get ..., and MPI_Rget for some, and for the last one of each owner
//   requests of the MPI_Rgets done (MPI_Testsome, with back-off and a deadline) --> one flush
//
// MPI_Win_flush alone would burn a core for as long as an owner is outside MPI, and would never
// return if that owner is dead. Once an owner has let the last piece go, its earlier ones have
// hardly anything left to wait for.
//
// Before and after a batch its owners get a word: a notice of one byte. For as long as somebody
// reads from it, an owner's serve() says that there is work, so that its thread rests little:
// between nodes, data may move only while the owner is inside MPI too.

class MpiOneSidedReader final : public RemoteReader {
 public:
  /// `comm` belongs to this object alone.
  MpiOneSidedReader(std::shared_ptr<MpiCommunicator> comm, std::shared_ptr<MpiWindow> window)
      : comm_(std::move(comm)), window_(std::move(window)) {
    comm_->carry_messages();
  }

  void start(std::span<const RemotePiece> pieces) override {
    if (broken_) throw Error(ErrorKind::cancelled, "an earlier read of other ranks' memory failed");
    pieces_.assign(pieces.begin(), pieces.end());
    begun_ = 0;
    begin_batch();
  }

  void finish(const WaitPolicy& policy) override {
    try {
      for (end_batch(policy); begun_ < pieces_.size(); end_batch(policy)) begin_batch();
    } catch (...) {
      give_up();
      throw;
    }
  }

  bool serve() override {
    while (const auto word = comm_->poll_notice()) {
      for (const std::byte value : *word) readers_ += value == kBegin ? 1 : -1;
    }
    return readers_ > 0;
  }

  bool quiet() const override { return quiet_; }

 private:
  struct Batch {
    std::vector<MPI_Request> markers;
    std::vector<int> owners;
  };

  void begin_batch() {
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

  void end_batch(const WaitPolicy& policy) {
    if (batch_->owners.empty()) return;
    wait_for_markers(policy);
    if (batch_->owners.size() == 1) {
      check_mpi(MPI_Win_flush(batch_->owners.front(), window_->handle()), "MPI_Win_flush");
    } else {
      check_mpi(MPI_Win_flush_all(window_->handle()), "MPI_Win_flush_all");
    }
    tell_owners(kEnd);
  }

  void wait_for_markers(const WaitPolicy& policy) {
    const std::string what = fmt::format("samples of rank {}{}", batch_->owners.front(),
                                         batch_->owners.size() > 1 ? " and others" : "");
    auto& markers = batch_->markers;
    std::vector<int> which(markers.size());
    for (;;) {
      BriskWaiting waiting(policy, what);
      for (int count = 0; count == 0;) {
        check_mpi(MPI_Testsome(static_cast<int>(markers.size()), markers.data(), &count,
                               which.data(), MPI_STATUSES_IGNORE),
                  "MPI_Testsome");
        if (count == MPI_UNDEFINED) return;  // none is left
        if (count == 0) waiting.step();
      }
    }
  }

  std::size_t batch_end() const {
    std::size_t end = begun_;
    for (std::size_t bytes = 0;
         end < pieces_.size() && end - begun_ < kBatchPieces && bytes < kBatchBytes; ++end) {
      bytes += pieces_[end].to.size();
    }
    return end;
  }

  void tell_owners(std::byte word) {
    for (const int owner : batch_->owners) comm_->send_notice(owner, std::span(&word, 1));
  }
  // MPI knows no way to take a read back, but when it was another rank that has failed, what was
  // asked for mostly comes: only where it does not, may MPI still write there at the end of the
  // process.
  void give_up() {
    broken_ = true;
    try {
      end_batch({.timeout = kLongestSettling});
    } catch (const Error&) {
      quiet_ = false;
      static_cast<void>(batch_.release());
      batch_ = std::make_unique<Batch>();
      set_mpi_gave_up();
    }
  }

  std::shared_ptr<MpiCommunicator> comm_;
  std::shared_ptr<MpiWindow> window_;
  std::vector<RemotePiece> pieces_;
  std::size_t begun_ = 0;  ///< pieces below it were asked for
  std::unique_ptr<Batch> batch_ = std::make_unique<Batch>();
  bool broken_ = false;
  bool quiet_ = true;
  int readers_ = 0;  ///< ranks that read from this one now; of the thread that serves
};

constexpr std::size_t kPage = 4096;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack

/// Parts begin at pages, so that each lies in the memory of the core that fills it.
std::size_t part_bytes(std::uint64_t bytes) {
  return (MpiWindow::kHead + bytes + kPage - 1) / kPage * kPage;
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

class MpiRemoteMemory final : public RemoteMemory {
 public:
  /// Collective over `comm`, which belongs to this object alone.
  MpiRemoteMemory(std::shared_ptr<MpiCommunicator> comm, Communicator& node, std::size_t bytes,
                  SharedMemoryKind kind)
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
  ~MpiRemoteMemory() override {
    if (window_ && !window_->free_with_others()) static_cast<void>(shared_.release());
  }

  std::span<std::byte> mine() const override { return mine_; }
  void reserve(std::size_t offset, std::size_t size) override {
    if (shared_) return shared_->reserve(begin_ + MpiWindow::kHead + offset, size);
    back(mine_.subspan(offset, size));
  }

  std::span<const std::byte> direct(int rank) const override {
    return direct_[static_cast<std::size_t>(rank)];
  }
  std::uint64_t bytes(int rank) const override { return sizes_[static_cast<std::size_t>(rank)]; }
  bool several_nodes() const override { return several_nodes_; }
  void publish() override {
    if (window_) check_mpi(MPI_Win_sync(window_->handle()), "MPI_Win_sync");
  }
  std::unique_ptr<RemoteReader> make_reader(Transport transport, std::string& why) override {
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
    return mpi_two_sided_reader(std::move(comm), mine_,
                                short_ones ? kShortMessage : kLongestMessage);
  }

  std::string describe() const override {
    if (!several_nodes_) return "shared memory of one node";
    if (!shared_) return "windows that MPI allocates";
    return window_ ? "windows over the shared memory of each node" : "shared memory of each node";
  }

 private:
  void share_on_node(Communicator& node, SharedMemoryKind kind) {
    const auto ranks = gather_all(node, comm_->rank());
    std::vector<std::size_t> begin(ranks.size() + 1, 0);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      begin[i + 1] = begin[i] + part_bytes(sizes_[static_cast<std::size_t>(ranks[i])]);
    }
    shared_ = node.share(begin.back(), kind);
    const auto me = static_cast<std::size_t>(node.rank());
    begin_ = begin[me];
    const std::size_t part = begin[me + 1] - begin_;
    collectively(
        *comm_, [&] { shared_->reserve(begin_, std::min(part, MpiWindow::kHead + kBackedBytes)); });
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto rank = static_cast<std::size_t>(ranks[i]);
      direct_[rank] = shared_->bytes().subspan(begin[i] + MpiWindow::kHead, sizes_[rank]);
    }
    const std::size_t bytes = sizes_[static_cast<std::size_t>(comm_->rank())];
    room_ = shared_->bytes().subspan(begin_, MpiWindow::kHead + bytes);
    mine_ = room_.subspan(MpiWindow::kHead);
  }

  void allocate_for_all() {
    const std::size_t bytes = sizes_[static_cast<std::size_t>(comm_->rank())];
    window_ = try_window(*comm_, window_fault_,
                         [&] { return MpiWindow::allocate(comm_->handle(), bytes, 0); });
    if (window_) mine_ = window_->bytes();
  }

  void open_to_other_nodes() {
    window_fault_.clear();
    window_ =
        try_window(*comm_, window_fault_, [&] { return MpiWindow::over(comm_->handle(), room_); });
  }

  std::shared_ptr<MpiCommunicator> comm_;
  std::vector<std::uint64_t> sizes_;                ///< by rank
  std::vector<std::span<const std::byte>> direct_;  ///< by rank
  bool several_nodes_ = false;
  std::unique_ptr<SharedMemory> shared_;
  std::size_t begin_ = 0;      ///< of this rank's part of it
  std::span<std::byte> room_;  ///< of this rank, with the head of a window
  std::span<std::byte> mine_;
  std::string window_fault_;           ///< why there is none
  std::shared_ptr<MpiWindow> window_;  ///< goes before the memory that it may lie over
};

}  // namespace

std::unique_ptr<RemoteMemory> mpi_remote_memory(std::shared_ptr<MpiCommunicator> comm,
                                                Communicator& node, std::size_t bytes,
                                                SharedMemoryKind kind) {
  return std::make_unique<MpiRemoteMemory>(std::move(comm), node, bytes, kind);
}

}  // namespace forebay
