// Samples in the memory of all ranks, and how one gets here: the RDMA-assisted in-situ shuffling
// and the hybrid pipeline of DeepIO (Zhu et al., MASCOTS 2018, sections III.A and III.B).
//
// Every rank fills its share of the data set; all ranks open the shares together; from then on any
// rank fetches any sample, in any order, without its owner doing anything:
//
//   own and same-node shares   plain copies out of shared memory
//   shares of other nodes      batches of one-sided reads, or of requests that the owner's progress
//                              thread answers, whichever a trial at the start found faster
//
// Where the data set does not fit into memory, a share has two buffers. While one serves, the next
// part of the data set is loaded into the other:
//
//   filling thread   take()/append() ... swap()        take()/append() ...      swap()
//   generation       | fills 0            | fills 1, 0 is read       | fills 2, 1 is read
//   reading thread                        fetch(0) ... release(0)    fetch(1) ... release(1)
//
// A reader may go on to generation g + 1 while slower ranks still read g: swap() opens g + 1 first,
// and then waits until all ranks have released g, whose buffer is filled next.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/failure_board.hpp"
#include "comm/progress_thread.hpp"
#include "comm/remote_memory.hpp"
#include "core/non_copyable.hpp"
#include "exchange/share.hpp"
#include "exchange/transport_choice.hpp"
#include "forebay/communicator.hpp"

namespace forebay {

struct ExchangeOptions {
  /// Room for this rank's share, in bytes, in each of the buffers. Ranks may differ.
  std::uint64_t share_bytes = 0;
  /// 1 when the data set fits; 2 loads the next part while one is read. The same on all ranks.
  int buffers = 1;
  /// The size of every sample in bytes, 0 where they differ (which costs 4 bytes a sample and
  /// node). The same on all ranks.
  std::uint64_t sample_bytes = 0;
  /// Between nodes; empty: try out. The same on all ranks.
  std::optional<Transport> transport;
  SharedMemoryKind memory = SharedMemoryKind::mpi;
  /// Memory is taken as shares grow, up to share_bytes, where the kind of memory allows it.
  bool grow = false;
  /// How long a fetch waits for bytes.
  std::chrono::milliseconds patience = std::chrono::minutes(10);
  /// How long a collective call waits for other ranks, which may still fill their shares, and
  /// wait_opened() for all of them.
  std::chrono::milliseconds filling_patience = std::chrono::minutes(10);
  /// A fetch waits this long at most, and half on average, for an owner that has been idle for less
  /// than a second, and longer after that (see ProgressThread::add()); shorter costs more of a
  /// core.
  std::chrono::microseconds longest_rest = std::chrono::milliseconds(7);
  /// Longer samples are moved in pieces. For tests; at most 1 GiB, the limit of MPI's counts
  /// halved.
  std::uint64_t longest_piece = std::uint64_t{1} << 30;
};

/// What the exchange works with.
struct ExchangeParts {
  std::shared_ptr<Communicator> world;
  std::shared_ptr<Communicator> node;   ///< this rank's part of it
  std::shared_ptr<FailureBoard> board;  ///< over both
  ProgressThread* progress = nullptr;   ///< outlives the exchange; not needed on a single node
};

/// What was moved so far, by this rank.
struct ExchangeFigures {
  std::uint64_t samples = 0;
  std::uint64_t near_bytes = 0;  ///< copied inside the node
  std::uint64_t far_bytes = 0;   ///< read from other nodes
  double fetch_seconds = 0;      ///< in fetch(), all threads together
};

/// One rank's part. Three threads may use it at a time: one that fills, one or more that fetch, and
/// the progress thread. Filling and collective calls are for one thread; where that is not the main
/// thread, MPI_THREAD_MULTIPLE is needed, and so it is for several nodes.
class Exchange : private NonCopyable {
 public:
  /// Collective. Throws usage for impossible options, io with needed and free bytes when there is
  /// too little memory (with `grow`: later, by the share that is filled), unsupported where nothing
  /// moves between nodes: on all ranks.
  Exchange(ExchangeParts parts, const ExchangeOptions& options);
  /// Meets the other ranks, which may still read from this one, for at most 5 s. A rank that leaves
  /// before them ends what they do with an error (cancelled), unless it has failed already.
  ~Exchange();

  // For the thread that fills.

  /// The share that is being filled. Throws usage when there is none: after open().
  HeldShare& filling();
  /// Makes the filled shares readable on all ranks, and returns their generation: 0, 1, ...
  /// Collective. Throws what another rank's failure was, communication past the patience.
  std::uint64_t open();
  /// Waits until every rank has released the generation that lies in the next buffer; filling() is
  /// empty then. Collective, and throws as open() does.
  void begin();
  /// open() and begin(): for exchanges of two buffers.
  std::uint64_t swap();

  // For threads that read. Local.

  /// Waits until `generation` is open. Throws cancelled when `give_up` says so, and as open() does.
  void wait_opened(std::uint64_t generation, const GiveUp& give_up = {});
  /// Size of one sample in bytes. Throws usage when there is none, or the generation is not open or
  /// was released.
  std::uint64_t bytes_of(std::uint64_t generation, const Wanted& wanted) const;
  /// Copies sample `wanted[i]` to `to[i]`, which is as long as it, for all i; repeats are fine.
  /// Waits until the generation is open. Throws as bytes_of() and wait_opened(), and communication
  /// when bytes do not come; see quiet().
  void fetch(std::uint64_t generation, std::span<const Wanted> wanted,
             std::span<const std::span<std::byte>> to, const GiveUp& give_up = {});
  /// This rank reads the generation no more, in no thread.
  void release(std::uint64_t generation);
  /// False after a fetch has failed so badly that MPI may still write to where it was to put
  /// samples: that memory must then stay until the process ends.
  bool quiet() const;

  /// Throws what has failed on any rank, as far as it is known here: one atomic load.
  void check() const { board_->check(); }
  /// The same after a look for news: for waits of those who use the exchange.
  void check_others() const;
  /// Lets all other ranks fail with `error`.
  void fail(const Error& error) { board_->fail(error); }

  std::uint64_t samples(std::uint64_t generation, int owner) const;
  ExchangeFigures figures() const;
  /// Where samples lie and how they move, in words. The same on all ranks.
  std::string describe() const;

 private:
  /// The tables of one buffer: one copy a node.
  struct Tables {
    std::unique_ptr<SharedMemory> memory;
    std::vector<ShareTable> of_ranks;
  };
  struct ShareSize {
    std::uint64_t samples = 0;
    std::uint64_t table_bytes = 0;
  };

  void check_options() const;
  void require_memory() const;
  void share_tables(Tables& tables);
  void spread(std::span<std::byte> tables, std::span<const std::uint64_t> begins);
  std::size_t buffer_of(std::uint64_t generation) const;
  HeldShare empty_share(std::uint64_t generation) const;
  const Tables& tables_of(std::uint64_t generation) const;
  ShareTable::Place place(const Tables& tables, const Wanted& wanted) const;
  FetchPlan plan(std::uint64_t generation, std::span<const Wanted> wanted,
                 std::span<const std::span<std::byte>> to) const;
  void read_far(FetchPlan& plan, const GiveUp& give_up);
  WaitPolicy policy(std::chrono::milliseconds patience, const GiveUp& give_up) const;
  void listen(ProgressThread* progress);
  void meet_at_the_end();

  ExchangeOptions options_;
  std::shared_ptr<FailureBoard> board_;
  std::shared_ptr<Communicator> comm_;
  std::shared_ptr<Communicator> node_;
  std::shared_ptr<Communicator> leaders_;  ///< the first ranks of all nodes, on these
  std::vector<int> node_of_;               ///< by rank
  std::unique_ptr<RemoteMemory> memory_;
  TransportChoice transport_;
  ProgressThread::Registration notices_;
  std::mutex far_mutex_;  ///< one read from other nodes at a time

  HeldShare share_;
  bool filling_ = true;
  std::uint64_t next_ = 0;  ///< generation that is filled now, or next
  std::vector<Tables> tables_;
  Generations generations_;

  std::atomic<std::uint64_t> fetched_samples_ = 0;
  std::atomic<std::uint64_t> near_bytes_ = 0;
  std::atomic<std::uint64_t> far_bytes_ = 0;
  std::atomic<std::int64_t> fetch_ns_ = 0;
};

}  // namespace forebay
