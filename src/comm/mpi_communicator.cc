#include "comm/mpi_communicator.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "comm/mpi_error.hpp"
#include "comm/mpi_window.hpp"
#include "comm/node_groups.hpp"
#include "comm/posix_shared_memory.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr int kNoticeTag = 7001;
constexpr int kGatherTag = 7002;
// MPI counts are 32-bit: longer transfers are split well below the limit.
constexpr std::size_t kLargestTransfer = std::size_t{1} << 30;

/// Calls `transfer(offset, count)` for pieces of at most kLargestTransfer bytes.
template <typename Transfer>
void in_pieces(std::size_t bytes, std::size_t element, Transfer transfer) {
  const std::size_t piece = kLargestTransfer / element;
  const std::size_t elements = bytes / element;
  for (std::size_t done = 0; done < elements; done += piece) {
    transfer(done, static_cast<int>(std::min(piece, elements - done)));
  }
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

MpiCommunicator::MpiCommunicator(MPI_Comm comm, WaitPolicy policy)
    : comm_(comm), policy_(std::move(policy)) {
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  concurrent_ = multiple_threads_granted();
}

MpiCommunicator::~MpiCommunicator() {
  int finalized = 0;
  if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0 || gave_up) return;
  MPI_Comm_free(&comm_);
}

void MpiCommunicator::wait(MPI_Request request, const char* what) {
  Waiting waiting(policy_, std::string(what) + " with the other ranks");
  for (;;) {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what);
    if (done != 0) return;
    try {
      waiting.step();
    } catch (...) {
      set_mpi_gave_up();
      throw;
    }
  }
}

void MpiCommunicator::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
  wait(request, "a barrier");
}

void MpiCommunicator::broadcast(std::span<std::byte> data, int root) {
  in_pieces(data.size(), 1, [&](std::size_t offset, int count) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ibcast(data.data() + offset, count, MPI_BYTE, root, comm_, &request),
              "MPI_Ibcast");
    wait(request, "a broadcast");
  });
}

void MpiCommunicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  if (mine.size() > kLargestTransfer) {
    throw Error(ErrorKind::usage, "all_gather takes at most 1 GiB a rank", "gather in pieces");
  }
  MPI_Request request = MPI_REQUEST_NULL;
  const int count = static_cast<int>(mine.size());
  check_mpi(
      MPI_Iallgather(mine.data(), count, MPI_BYTE, all.data(), count, MPI_BYTE, comm_, &request),
      "MPI_Iallgather");
  wait(request, "gathering");
}

std::vector<std::byte> MpiCommunicator::receive(int from, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  in_pieces(bytes, 1, [&](std::size_t offset, int count) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Irecv(data.data() + offset, count, MPI_BYTE, from, kGatherTag, comm_, &request),
              "MPI_Irecv");
    wait(request, "receiving");
  });
  return data;
}

std::vector<std::vector<std::byte>> MpiCommunicator::gather(std::span<const std::byte> mine,
                                                            int root) {
  const std::uint64_t size = mine.size();
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(size_));
  all_gather(std::as_bytes(std::span(&size, 1)), std::as_writable_bytes(std::span(sizes)));
  std::vector<std::vector<std::byte>> all;
  if (rank_ != root) {
    in_pieces(mine.size(), 1, [&](std::size_t offset, int count) {
      MPI_Request request = MPI_REQUEST_NULL;
      check_mpi(MPI_Isend(mine.data() + offset, count, MPI_BYTE, root, kGatherTag, comm_, &request),
                "MPI_Isend");
      wait(request, "sending");
    });
    return all;
  }
  for (int rank = 0; rank < size_; ++rank) {
    all.push_back(rank == rank_ ? std::vector<std::byte>(mine.begin(), mine.end())
                                : receive(rank, sizes[static_cast<std::size_t>(rank)]));
  }
  return all;
}

void MpiCommunicator::all_reduce_sum(std::span<float> values) {
  in_pieces(values.size_bytes(), sizeof(float), [&](std::size_t offset, int count) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, values.data() + offset, count, MPI_FLOAT, MPI_SUM, comm_,
                             &request),
              "MPI_Iallreduce");
    wait(request, "summing");
  });
}

std::shared_ptr<Communicator> MpiCommunicator::split(int color, int key) {
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(comm_, color, key, &part), "MPI_Comm_split");
  return std::make_shared<MpiCommunicator>(part, policy_);
}

std::shared_ptr<Communicator> MpiCommunicator::split_by_node() {
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &part),
            "MPI_Comm_split_type");
  MpiCommunicator node(part, policy_);
  int ranks_per_node = 0;
  collectively(*this, [&] { ranks_per_node = ranks_per_node_from_environment(); });
  return split_into_virtual_nodes(node, ranks_per_node);
}

std::unique_ptr<SharedMemory> MpiCommunicator::share(std::size_t bytes, SharedMemoryKind kind) {
  return kind == SharedMemoryKind::mpi ? share_mpi(comm_, bytes) : share_posix(*this, bytes);
}

void MpiCommunicator::send_notice(int to, std::span<const std::byte> message) {
  const std::lock_guard lock(notices_mutex_);
  auto& notice = notices_.emplace_back();
  notice.message.assign(message.begin(), message.end());
  check_mpi(MPI_Isend(notice.message.data(), static_cast<int>(notice.message.size()), MPI_BYTE, to,
                      kNoticeTag, comm_, &notice.request),
            "MPI_Isend");
}

std::optional<std::vector<std::byte>> MpiCommunicator::poll_notice() {
  const std::lock_guard lock(notices_mutex_);
  int waiting = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kNoticeTag, comm_, &waiting, &status), "MPI_Iprobe");
  if (waiting == 0) return std::nullopt;
  int count = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
  std::vector<std::byte> message(static_cast<std::size_t>(std::max(count, 0)));
  check_mpi(MPI_Recv(message.data(), count, MPI_BYTE, status.MPI_SOURCE, kNoticeTag, comm_,
                     MPI_STATUS_IGNORE),
            "MPI_Recv");
  return message;
}

std::shared_ptr<Communicator> mpi_communicator(MPI_Comm comm) {
  MPI_Comm duplicate = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(comm, &duplicate), "MPI_Comm_dup");
  return std::make_shared<MpiCommunicator>(duplicate, WaitPolicy{});
}

bool mpi_gave_up() { return gave_up; }
void set_mpi_gave_up() { gave_up = true; }

}  // namespace forebay
