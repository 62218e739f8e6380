// What a sample in the memory of another rank costs.
//
//   mpirun -n 2 exchange_bench-openmpi [--seconds S] [--parts LIST]
//          [--transport one_sided|two_sided|two_sided_short] [--latency-bytes N]
//          [--computing no] [--only-bytes N]
//
// Ranks share a node unless FOREBAY_RANKS_PER_NODE=1 (or the launcher) puts each on its own. Parts:
//
//   idle       CPU time of a rank whose exchange nobody uses, as a share of one core
//   latency    one sample (64 KB) from the last rank, at random moments, while the main thread of
//              every rank computes and stays outside MPI
//   bandwidth  random fetches of rank 0 from the last rank, 1 KB to 1 MB, beside what could be had
//              without an exchange: plain copies out of shared memory in a node, and between nodes
//              MPI_Get in batches with one flush, and messages, each with an owner that does
//              nothing else than call MPI; and the same with an owner whose main thread computes
//              and whose MPI calls another thread makes
//
// Every figure is measured several times, in turns with what it is compared with, since other load
// may change; medians, extremes, and the median of the ratios within a turn are reported. Rank 0
// prints one JSON object.
#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/figures.hpp"
#include "comm/failure_board.hpp"
#include "comm/mpi/check.hpp"
#include "comm/progress_thread.hpp"
#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/non_copyable.hpp"
#include "core/placement.hpp"
#include "exchange/exchange.hpp"
#include "forebay/mpi.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kShareBytes = std::uint64_t{128} << 20;
constexpr std::size_t kBatchBytes = std::size_t{8} << 20;
constexpr std::size_t kMostSamples = 1024;  // in a batch

struct Options {
  double seconds;  ///< for idle, and for latency; a tenth for each size and turn
  std::string parts;
  std::uint64_t latency_bytes;
  std::size_t only_bytes;  ///< the one size for bandwidth; 0 = all
  bool computing;          ///< while latency is measured
  std::optional<Transport> transport = {};

  explicit Options(std::span<char*> words)
      : seconds(std::stod(option(words, "--seconds", "4"))),
        parts(option(words, "--parts", "idle,latency,bandwidth")),
        latency_bytes(std::stoul(option(words, "--latency-bytes", "65536"))),
        only_bytes(std::stoul(option(words, "--only-bytes", "0"))),
        computing(option(words, "--computing", "yes") != "no") {
    for (const Transport one :
         {Transport::one_sided, Transport::two_sided, Transport::two_sided_short}) {
      if (option(words, "--transport", "") == to_string(one)) transport = one;
    }
  }
  bool has(std::string_view part) const { return parts.find(part) != std::string::npos; }
};

Series ratios(const Series& ours, const Series& theirs) {
  Series result;
  for (std::size_t i = 0; i < ours.values().size(); ++i) {
    result.add(ours.values()[i] / theirs.values()[i]);
  }
  return result;
}

std::byte content(int owner, std::uint64_t index) {
  return static_cast<std::byte>(static_cast<std::uint64_t>(owner) * 100 + index % 97);
}

/// An exchange of samples of one size, and what it stands on.
class Bench {
 public:
  Bench(const std::shared_ptr<Communicator>& world, const Options& options,
        std::uint64_t sample_bytes)
      : world_(world->split(0, world->rank())),
        node_(world_->split_by_node()),
        sample_bytes_(sample_bytes) {
    board_ = std::make_shared<FailureBoard>(world_, node_);
    exchange_ = std::make_unique<Exchange>(
        ExchangeParts{.world = world_, .node = node_, .board = board_, .progress = &progress_},
        ExchangeOptions{.share_bytes = kShareBytes,
                        .sample_bytes = sample_bytes,
                        .transport = options.transport});
    for (std::uint64_t i = 0; i < samples(); ++i) {
      std::ranges::fill(exchange_->filling().take(sample_bytes), content(world_->rank(), i));
    }
    exchange_->open();
  }

  std::uint64_t samples() const { return kShareBytes / sample_bytes_; }
  Exchange& exchange() { return *exchange_; }
  Communicator& world() { return *world_; }
  int owner() const { return world_->size() - 1; }

  void fetch(std::span<const std::uint64_t> indices, std::span<std::byte> room) {
    wanted_.clear();
    to_.clear();
    for (const std::uint64_t index : indices) {
      wanted_.push_back({.owner = owner(), .index = index});
      to_.push_back(room.subspan(to_.size() * sample_bytes_, sample_bytes_));
    }
    exchange_->fetch(0, wanted_, to_);
  }
  bool right(std::span<const std::uint64_t> indices, std::span<const std::byte> room) const {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto got = room.subspan(i * sample_bytes_, sample_bytes_);
      const std::byte expected = content(owner(), indices[i]);
      if (got.front() != expected || got.back() != expected) return false;
    }
    return true;
  }

 private:
  std::shared_ptr<Communicator> world_;
  std::shared_ptr<Communicator> node_;
  std::shared_ptr<FailureBoard> board_;
  ProgressThread progress_;
  std::uint64_t sample_bytes_;
  std::unique_ptr<Exchange> exchange_;
  std::vector<Wanted> wanted_;
  std::vector<std::span<std::byte>> to_;
};

/// Largest value of all ranks.
double worst(Communicator& comm, double mine) { return std::ranges::max(gather_all(comm, mine)); }

Json measure_idle(const std::shared_ptr<Communicator>& world, const Options& options) {
  Bench bench(world, options, 65536);
  world->barrier();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  Series shares;
  constexpr int kTurns = 5;
  for (int turn = 0; turn < kTurns; ++turn) {
    const double cpu = process_cpu_seconds();
    const double begin = now_seconds();
    std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds / kTurns));
    shares.add((process_cpu_seconds() - cpu) / (now_seconds() - begin));
  }
  return {{"share_of_a_core_of_the_worst_rank", worst(*world, shares.median())},
          {"largest_share_in_a_turn", worst(*world, shares.quantile(1))}};
}

/// Keeps a core busy, far from MPI.
double compute_until(const std::atomic<bool>& done) {
  double sum = 1;
  while (!done) {
    for (int i = 1; i < 10000; ++i) sum += 1.0 / (sum + i);
  }
  return sum;
}

Json measure_latency(const std::shared_ptr<Communicator>& world, const Options& options) {
  Bench bench(world, options, options.latency_bytes);
  std::vector<std::byte> room(options.latency_bytes);
  Series milliseconds;
  std::atomic<bool> done = false;
  bool right = true;
  world->barrier();
  std::thread fetching([&] {
    ask_for_short_turns();  // as the thread of a ReadBuffer does
    std::mt19937_64 random(static_cast<unsigned>(world->rank()));
    const double end = now_seconds() + options.seconds;
    while (now_seconds() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
      const std::vector<std::uint64_t> index{random() % bench.samples()};
      const double begin = now_seconds();
      bench.fetch(index, room);
      milliseconds.add((now_seconds() - begin) * 1e3);
      right = right && bench.right(index, room);
    }
    done = true;
  });
  const double sum = options.computing ? compute_until(done) : 1;
  fetching.join();
  world->barrier();
  return {{"right", right && sum > 0},
          {"fetches", milliseconds.values().size()},
          {"median_ms", milliseconds.median()},
          {"p90_ms", milliseconds.quantile(0.9)},
          {"p99_ms", milliseconds.quantile(0.99)},
          {"max_ms", milliseconds.quantile(1)},
          {"moved_by", bench.exchange().describe()}};
}

/// The raw transports: a window that MPI allocates, if it does, and messages; rank 0 reads from the
/// last rank.
class Raw : private NonCopyable {
 public:
  Raw(Communicator& world, std::size_t sample_bytes) : world_(world), sample_bytes_(sample_bytes) {
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
    void* base = nullptr;
    check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    const bool made = MPI_Win_allocate(static_cast<MPI_Aint>(kShareBytes), 1, MPI_INFO_NULL, comm_,
                                       static_cast<void*>(&base), &window_) == MPI_SUCCESS;
    if (!made) {
      window_ = MPI_WIN_NULL;
      own_.resize(kShareBytes);
      base = own_.data();
    }
    memory_ = static_cast<std::byte*>(base);
    std::memset(memory_, 1, kShareBytes);
    if (!made) return;
    check_mpi(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "MPI_Win_lock_all");
  }
  ~Raw() {
    if (window_ != MPI_WIN_NULL) {
      MPI_Win_unlock_all(window_);
      MPI_Win_free(&window_);
    }
    MPI_Comm_free(&comm_);
  }

  /// Whether MPI makes windows here.
  bool gets() const { return window_ != MPI_WIN_NULL; }

  void get(std::span<const std::uint64_t> indices, std::span<std::byte> room) {
    const int owner = world_.size() - 1;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      check_mpi(
          MPI_Get(room.data() + i * sample_bytes_, count(), MPI_BYTE, owner,
                  static_cast<MPI_Aint>(indices[i] * sample_bytes_), count(), MPI_BYTE, window_),
          "MPI_Get");
    }
    check_mpi(MPI_Win_flush(owner, window_), "MPI_Win_flush");
  }

  void receive(std::span<const std::uint64_t> indices, std::span<std::byte> room) {
    requests_.resize(indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      check_mpi(MPI_Irecv(room.data() + i * sample_bytes_, count(), MPI_BYTE, world_.size() - 1, 5,
                          comm_, &requests_[i]),
                "MPI_Irecv");
    }
    wait();
  }
  void send(std::span<const std::uint64_t> indices) {
    requests_.resize(indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      check_mpi(MPI_Isend(memory_ + indices[i] * sample_bytes_, count(), MPI_BYTE, 0, 5, comm_,
                          &requests_[i]),
                "MPI_Isend");
    }
    wait();
  }
  /// Keeps MPI going on all ranks until the last one arrives here.
  void meet() {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
    for (int done = 0; done == 0; sched_yield()) {
      check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    }
  }

 private:
  int count() const { return static_cast<int>(sample_bytes_); }
  void wait() {
    for (int done = 0; done == 0; sched_yield()) {
      check_mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                            MPI_STATUSES_IGNORE),
                "MPI_Testall");
    }
  }

  Communicator& world_;
  std::size_t sample_bytes_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::byte> own_;  ///< where there is no window
  std::byte* memory_ = nullptr;
  std::vector<MPI_Request> requests_;
};

/// One size. Batches of random samples, the same ones for every way of moving them.
class Bandwidth {
 public:
  Bandwidth(const std::shared_ptr<Communicator>& world, const Options& options,
            std::size_t sample_bytes)
      : options_(options),
        sample_bytes_(sample_bytes),
        bench_(world, options, sample_bytes),
        batch_(std::clamp<std::size_t>(kBatchBytes / sample_bytes, 1, kMostSamples)),
        room_(batch_ * sample_bytes) {}

  Json run() {
    const bool nodes = bench_.world().split_by_node()->size() < bench_.world().size();
    Json result{{"sample_bytes", sample_bytes_}, {"samples_a_batch", batch_}};
    bool right = true;
    if (nodes) {
      between_nodes(result);
    } else {
      inside(result);
    }
    if (bench_.world().rank() == 0) {
      std::mt19937_64 random(9);
      const auto indices = draw(random);
      bench_.fetch(indices, room_);
      right = bench_.right(indices, room_);
    }
    result["right"] = right;
    result["moved_by"] = bench_.exchange().describe();
    bench_.world().barrier();
    return result;
  }

 private:
  static constexpr int kTurns = 9;

  std::vector<std::uint64_t> draw(std::mt19937_64& random) const {
    std::vector<std::uint64_t> indices;
    for (std::size_t i = 0; i < batch_; ++i) indices.push_back(random() % bench_.samples());
    return indices;
  }

  /// MB/s of `rounds` batches.
  template <typename Move>
  double pace(int rounds, Move move) {
    std::mt19937_64 random(4);
    double seconds = 0;
    for (int round = 0; round < rounds; ++round) {
      const auto indices = draw(random);
      const Stopwatch watch(seconds);
      move(indices);
    }
    return static_cast<double>(rounds) * static_cast<double>(room_.size()) / seconds / 1e6;
  }
  /// How many batches fit into the time of a turn; the same on all ranks.
  int rounds() {
    double rate = 0;
    const auto fetch = [&](const auto& indices) { bench_.fetch(indices, room_); };
    if (bench_.world().rank() == 0) rate = pace(1, fetch), rate = pace(2, fetch);
    share_value(bench_.world(), rate);
    const double batches = options_.seconds / 40 * rate * 1e6 / static_cast<double>(room_.size());
    return std::clamp(static_cast<int>(batches), 2, 2000);
  }

  void inside(Json& result) {
    const auto node = bench_.world().split_by_node();
    const auto shared = node->share(kShareBytes, SharedMemoryKind::posix);
    shared->reserve(0, kShareBytes);
    if (node->rank() == node->size() - 1) std::ranges::fill(shared->bytes(), std::byte{1});
    const int turns = rounds();
    Series ours, plain;
    if (node->rank() == 0) {
      const std::byte* const from = shared->bytes().data();
      for (int turn = 0; turn < kTurns; ++turn) {
        plain.add(pace(turns, [&](const auto& indices) {
          for (std::size_t i = 0; i < indices.size(); ++i) {
            std::memcpy(room_.data() + i * sample_bytes_, from + indices[i] * sample_bytes_,
                        sample_bytes_);
          }
        }));
        ours.add(pace(turns, [&](const auto& indices) { bench_.fetch(indices, room_); }));
      }
    }
    node->barrier();
    result["fetch_mb_s"] = ours.json();
    result["plain_copy_mb_s"] = plain.json();
    result["over_plain_copy"] = ratios(ours, plain).json();
  }

  void between_nodes(Json& result) {
    Raw raw(bench_.world(), sample_bytes_);
    const int turns = rounds();
    compare_ways(result, raw, turns, [](const auto& serve) { serve(); });
    // What the raw transports reach where the owner is one that trains: its main thread computes,
    // and another one does nothing else than call MPI.
    compare_ways(result["owner_computes"], raw, std::max(2, turns / 8), [](const auto& serve) {
      std::atomic<bool> done = false;
      std::thread serving([&] {
        ask_for_short_turns();
        serve();
        done = true;
      });
      const bool computed = compute_until(done) > 0;
      serving.join();
      if (!computed) throw std::logic_error("nothing was computed");
    });
  }

  /// `owner`: how the rank whose samples are read does what it has to do for it.
  void compare_ways(Json& result, Raw& raw, int turns,
                    const std::function<void(const std::function<void()>&)>& owner) {
    const bool reads = bench_.world().rank() == 0;
    const bool owns = bench_.world().rank() == bench_.owner();
    const auto owner_or_not = [&](const std::function<void()>& meet) {
      if (owns) return owner(meet);
      meet();
    };
    Series ours, gets, messages;
    for (int turn = 0; turn < kTurns; ++turn) {
      raw.meet();
      if (reads && raw.gets()) {
        gets.add(pace(turns, [&](const auto& list) { raw.get(list, room_); }));
      }
      owner_or_not([&] { raw.meet(); });
      if (reads) messages.add(pace(turns, [&](const auto& list) { raw.receive(list, room_); }));
      if (owns) owner([&] { pace(turns, [&](const auto& list) { raw.send(list); }); });
      bench_.world().barrier();
      if (reads) ours.add(pace(turns, [&](const auto& list) { bench_.fetch(list, room_); }));
      owner_or_not([&] { bench_.world().barrier(); });
    }
    compare(result, ours, gets, messages);
  }

  static void compare(Json& result, const Series& ours, const Series& gets,
                      const Series& messages) {
    const Series& faster = gets.median() > messages.median() ? gets : messages;
    result["fetch_mb_s"] = ours.json();
    if (!gets.values().empty()) result["mpi_get_mb_s"] = gets.json();
    result["messages_mb_s"] = messages.json();
    result["over_faster_raw"] = ratios(ours, faster).json();
  }

  const Options& options_;
  std::size_t sample_bytes_;
  Bench bench_;
  std::size_t batch_;
  std::vector<std::byte> room_;
};

void run(const std::shared_ptr<Communicator>& world, const Options& options) {
  const int nodes = world->size() / world->split_by_node()->size();
  Json result{{"ranks", world->size()}, {"nodes", nodes}};
  if (options.has("idle")) result["idle"] = measure_idle(world, options);
  if (options.has("latency")) result["latency"] = measure_latency(world, options);
  if (options.has("bandwidth")) {
    result["bandwidth"] = Json::array();
    for (std::size_t bytes = 1024; bytes <= 1 << 20; bytes *= 4) {
      if (options.only_bytes != 0 && bytes != options.only_bytes) continue;
      result["bandwidth"].push_back(Bandwidth(world, options, bytes).run());
    }
  }
  if (world->rank() == 0) fmt::print("{}\n", result.dump(2));
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  const forebay::MpiSession session;
  try {
    forebay::run(session.world(), forebay::Options({argv, static_cast<std::size_t>(argc)}));
  } catch (const std::exception& error) {
    fmt::print(stderr, "exchange_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
