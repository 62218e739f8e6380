#include "comm/mpi/communicator.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "comm/common_file.hpp"
#include "comm/messages.hpp"
#include "comm/mpi/window.hpp"
#include "comm/node_groups.hpp"
#include "comm/nonblocking.hpp"
#include "comm/posix_shared_memory.hpp"
#include "comm/remote_memory.hpp"
#include "comm/values.hpp"
#include "core/copy_values.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr int kNoticeTag = 7001;
constexpr int kGatherTag = 7002;
constexpr int kMessageTag = 7003;
constexpr int kFarewellTag = 7004;
constexpr std::chrono::milliseconds kLongestFarewell{500};
// For messages that are still being sent when their communicator ends.
constexpr std::chrono::seconds kLongestSettling{2};
// Far below the limit of MPI's 32-bit counts, and small enough to keep a copy of.
constexpr std::size_t kLargestPiece = std::size_t{16} << 20;

template <typename Element>
int count_of(std::span<Element> piece) {
  return static_cast<int>(piece.size());
}

// Whether a non-blocking operation of this process was given up before its end. MPI cannot cancel
// those: freeing the communicator or finalizing would then crash or hang, so both are left out.
std::atomic<bool> gave_up = false;

bool multiple_threads_granted() {
  int level = MPI_THREAD_SINGLE;
  check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  return level == MPI_THREAD_MULTIPLE;
}

}  // namespace

bool MpiMailbox::complete(Transfer& transfer) {
  int done = 0;
  check_mpi(MPI_Test(&transfer.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

void MpiMailbox::send(int to, std::span<const std::byte> message) {
  require_sendable(message.size());
  const std::lock_guard lock(mutex_);
  transfers_->outgoing.remove_if(complete);
  Transfer& transfer = transfers_->outgoing.emplace_back();
  transfer.message.assign(message.begin(), message.end());
  check_mpi(MPI_Isend(transfer.message.data(), static_cast<int>(message.size()), MPI_BYTE, to, tag_,
                      comm_, &transfer.request),
            "MPI_Isend");
}

bool MpiMailbox::begin_to_receive(int from) {
  int waiting = 0;
  MPI_Message matched = MPI_MESSAGE_NULL;
  MPI_Status status;
  // The first look may only make MPICH take in what has come, and not show it yet.
  for (int look = 0; look < 2 && waiting == 0; ++look) {
    check_mpi(MPI_Improbe(from, tag_, comm_, &waiting, &matched, &status), "MPI_Improbe");
  }
  if (waiting == 0) return false;
  int bytes = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  Transfer& transfer = transfers_->incoming[from];
  transfer.message.resize(static_cast<std::size_t>(std::max(bytes, 0)));
  check_mpi(MPI_Imrecv(transfer.message.data(), bytes, MPI_BYTE, &matched, &transfer.request),
            "MPI_Imrecv");
  return true;
}

std::optional<std::vector<std::byte>> MpiMailbox::receive(int from) {
  const std::lock_guard lock(mutex_);
  // Long messages move while their sender looks for others.
  transfers_->outgoing.remove_if(complete);
  if (!transfers_->incoming.contains(from) && !begin_to_receive(from)) return std::nullopt;
  const auto arriving = transfers_->incoming.find(from);
  if (!complete(arriving->second)) return std::nullopt;
  auto message = std::move(arriving->second.message);
  transfers_->incoming.erase(arriving);
  return message;
}

void MpiMailbox::drain() {
  while (receive(MPI_ANY_SOURCE)) {
  }
}

bool MpiMailbox::all_complete() {
  const std::lock_guard lock(mutex_);
  transfers_->outgoing.remove_if(complete);
  bool received = true;
  for (auto& [from, transfer] : transfers_->incoming) received = complete(transfer) && received;
  return transfers_->outgoing.empty() && received;
}

bool MpiMailbox::settle(std::chrono::milliseconds limit) {
  const WaitPolicy policy{.timeout = limit};
  Waiting waiting(policy, "messages that are under way");
  try {
    while (!all_complete()) waiting.step();
  } catch (const Error&) {
    return false;
  }
  return true;
}

void MpiMailbox::leak() {
  const std::lock_guard lock(mutex_);
  static_cast<void>(transfers_.release());
  transfers_ = std::make_unique<Transfers>();
}

MpiCommunicator::MpiCommunicator(MPI_Comm comm, WaitPolicy policy)
    : comm_(comm), policy_(std::move(policy)) {
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  concurrent_ = multiple_threads_granted();
  notices_.emplace(comm_, kNoticeTag);
  messages_.emplace(comm_, kMessageTag);
  farewells_.emplace(comm_, kFarewellTag);
}

MpiCommunicator::~MpiCommunicator() {
  if (mpi_is_over()) return;
  const bool parted = gave_up || part();
  const auto patience = gave_up ? std::chrono::seconds(0) : kLongestSettling;
  for (MpiMailbox* const box : {&*notices_, &*messages_, &*farewells_}) {
    if (!box->settle(patience)) set_mpi_gave_up();
  }
  if (gave_up) {
    // MPI may still be at work on these.
    static_cast<void>(working_.release());
    for (MpiMailbox* const box : {&*notices_, &*messages_, &*farewells_}) box->leak();
  } else if (parted) {
    MPI_Comm_free(&comm_);
  }
}

/// Whether nothing can arrive on this communicator any more. Farewells come behind all that their
/// sender has sent before.
bool MpiCommunicator::part() {
  if (!carries_messages_) return true;
  try {
    for (int rank = 0; rank < size_; ++rank) farewells_->send(rank, {});
    const WaitPolicy policy{.timeout = kLongestFarewell};
    Waiting waiting(policy, "the farewells of other ranks");
    for (int heard = 0; heard < size_; waiting.step()) {
      while (farewells_->receive(MPI_ANY_SOURCE)) ++heard;
      messages_->drain();
      notices_->drain();
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::span<std::byte> MpiCommunicator::working(std::size_t bytes) {
  if (working_->size() < bytes) {
    if (gave_up) static_cast<void>(working_.release());
    working_ = std::make_unique<std::vector<std::byte>>(bytes);
  }
  return std::span(*working_).first(bytes);
}

void wait_for(MPI_Request& request, const WaitPolicy& policy, std::string what) {
  Waiting waiting(policy, std::move(what));
  try {
    for (int done = 0;; waiting.step()) {
      check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done != 0) return;
    }
  } catch (...) {
    set_mpi_gave_up();
    throw;
  }
}

void MpiCommunicator::wait(MPI_Request request, const char* what) {
  wait_for(request, policy_, std::string(what) + " with the other ranks");
}

std::shared_ptr<MpiCommunicator> MpiCommunicator::own() {
  return std::static_pointer_cast<MpiCommunicator>(split(0, rank_));
}

void MpiCommunicator::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
  wait(request, "a barrier");
}

void MpiCommunicator::broadcast(std::span<std::byte> data, int root) {
  in_pieces(data, kLargestPiece, [&](std::span<std::byte> piece) {
    const auto room = working(piece.size());
    if (rank_ == root) copy_values(piece, room);
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ibcast(room.data(), count_of(room), MPI_BYTE, root, comm_, &request),
              "MPI_Ibcast");
    wait(request, "a broadcast");
    if (rank_ != root) copy_values(room, piece);
  });
}

void MpiCommunicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  if (mine.size() > kLargestPiece) {
    throw Error(ErrorKind::usage, "all_gather takes at most 16 MiB a rank", "gather in pieces");
  }
  const auto room = working(mine.size() + all.size());
  const auto sent = room.first(mine.size());
  const auto received = room.subspan(mine.size());
  copy_values(mine, sent);
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallgather(sent.data(), count_of(sent), MPI_BYTE, received.data(), count_of(sent),
                           MPI_BYTE, comm_, &request),
            "MPI_Iallgather");
  wait(request, "gathering");
  copy_values(received, all);
}

std::vector<std::byte> MpiCommunicator::receive_part(int from, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  in_pieces(std::span(data), kLargestPiece, [&](std::span<std::byte> piece) {
    const auto room = working(piece.size());
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Irecv(room.data(), count_of(room), MPI_BYTE, from, kGatherTag, comm_, &request),
              "MPI_Irecv");
    wait(request, "receiving");
    copy_values(room, piece);
  });
  return data;
}

void MpiCommunicator::send_part(int to, std::span<const std::byte> data) {
  in_pieces(data, kLargestPiece, [&](std::span<const std::byte> piece) {
    const auto room = working(piece.size());
    copy_values(piece, room);
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Isend(room.data(), count_of(room), MPI_BYTE, to, kGatherTag, comm_, &request),
              "MPI_Isend");
    wait(request, "sending");
  });
}

std::vector<std::vector<std::byte>> MpiCommunicator::gather(std::span<const std::byte> mine,
                                                            int root) {
  const auto sizes = gather_all(*this, std::uint64_t{mine.size()});
  std::vector<std::vector<std::byte>> all;
  if (rank_ != root) {
    send_part(root, mine);
    return all;
  }
  for (int rank = 0; rank < size_; ++rank) {
    all.push_back(rank == rank_ ? std::vector<std::byte>(mine.begin(), mine.end())
                                : receive_part(rank, sizes[static_cast<std::size_t>(rank)]));
  }
  return all;
}

void MpiCommunicator::all_reduce_sum(std::span<float> values) {
  in_pieces(values, kLargestPiece, [&](std::span<float> piece) {
    const auto room = working(piece.size_bytes());
    std::memcpy(room.data(), piece.data(), room.size());
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, room.data(), count_of(piece), MPI_FLOAT, MPI_SUM, comm_,
                             &request),
              "MPI_Iallreduce");
    wait(request, "summing");
    std::memcpy(piece.data(), room.data(), room.size());
  });
}

// Splitting and allocating windows block inside MPI, where no deadline reaches: the barrier before
// them has one, and lets nobody in before all are there.
std::shared_ptr<Communicator> MpiCommunicator::split(int color, int key) {
  barrier();
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(comm_, color, key, &part), "MPI_Comm_split");
  return std::make_shared<MpiCommunicator>(part, policy_);
}

std::shared_ptr<Communicator> MpiCommunicator::split_by_node() {
  int ranks_per_node = 0;
  collectively(*this, [&] { ranks_per_node = ranks_per_node_from_environment(); });
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &part),
            "MPI_Comm_split_type");
  MpiCommunicator node(part, policy_);
  return split_into_virtual_nodes(node, ranks_per_node);
}

std::unique_ptr<SharedMemory> MpiCommunicator::share(std::size_t bytes, SharedMemoryKind kind) {
  if (kind == SharedMemoryKind::posix) return share_posix(*this, bytes);
  barrier();
  return share_mpi(*this, comm_, bytes);
}

std::unique_ptr<SharedCounter> MpiCommunicator::share_counter() { return share_mpi_counter(own()); }

std::unique_ptr<RemoteMemory> MpiCommunicator::expose(Communicator& node, std::size_t bytes,
                                                      SharedMemoryKind kind) {
  return mpi_remote_memory(own(), node, bytes, kind);
}

std::unique_ptr<CommonFile> MpiCommunicator::open_together(const std::string& path) {
  return open_mpi_file(own(), path);
}

std::unique_ptr<NonblockingCollectives> MpiCommunicator::nonblocking() {
  return mpi_nonblocking(own());
}

void MpiCommunicator::send_notice(int to, std::span<const std::byte> message) {
  if (!mpi_is_over()) notices_->send(to, message);
}

std::optional<std::vector<std::byte>> MpiCommunicator::poll_notice() {
  if (mpi_is_over()) return std::nullopt;
  return notices_->receive(MPI_ANY_SOURCE);
}

void MpiCommunicator::send(int to, std::span<const std::byte> message) {
  if (mpi_is_over()) return;
  messages_->send(to, message);
}

std::optional<std::vector<std::byte>> MpiCommunicator::try_receive(int from) {
  if (mpi_is_over()) return std::nullopt;
  return messages_->receive(from);
}

// Also when it cannot be asked.
bool mpi_is_over() {
  int finalized = 0;
  return MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0;
}

bool mpi_gave_up() { return gave_up; }
void set_mpi_gave_up() { gave_up = true; }

}  // namespace forebay
