#include "exchange/transport_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kReading{16};    // by the ranks whose turn it is
constexpr milliseconds kOutside{24};    // MPI, for the main threads of the others
constexpr milliseconds kLongest{1000};  // for one batch, before a transport counts as broken
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
// Lists grow from the one to the other: short ones measure how long an owner rests, and long ones
// take a slow network too long.
constexpr std::size_t kFewestPieces = 8;
constexpr std::size_t kMostPieces = 64;
constexpr std::size_t kFewestLists = 3;

/// What rank `rank` writes at the start of its memory for the others to find.
std::byte expected(int rank, std::size_t at) {
  return static_cast<std::byte>(static_cast<std::size_t>(rank) * 31 + at % 251);
}

/// The part of a memory that is read, and from whom this rank reads it.
std::size_t probe_bytes(const RemoteMemory& memory, int rank) {
  return std::min<std::size_t>(kPieceBytes, memory.bytes(rank));
}

std::optional<int> owner_to_read(const Communicator& comm, const RemoteMemory& memory) {
  for (int step = 1; step < comm.size(); ++step) {
    const int rank = (comm.rank() + step) % comm.size();
    if (memory.bytes(rank) > 0 && memory.direct(rank).empty()) return rank;
  }
  return std::nullopt;
}

/// Seconds a byte of one transport, as this rank sees it; 0 when it has nothing to read.
class Trial {
 public:
  Trial(Communicator& comm, const RemoteMemory& memory, RemoteReader& reader, int node)
      : comm_(comm), memory_(memory), reader_(reader), node_(node) {}

  /// Throws communication when bytes do not come, or are wrong. Every rank gets to the end.
  double run() {
    std::exception_ptr failure;
    double pace = 0;
    for (int turn = 0; turn < 2; ++turn) {
      comm_.barrier();
      try {
        if (node_ % 2 == turn) {
          pace = read();
        } else {
          std::this_thread::sleep_for(kOutside);
        }
      } catch (const Error&) {
        failure = std::current_exception();
      }
    }
    comm_.barrier();
    if (failure) std::rethrow_exception(failure);
    return pace;
  }

 private:
  double read() {
    const auto owner = owner_to_read(comm_, memory_);
    if (!owner) return 0;
    const std::size_t bytes = probe_bytes(memory_, *owner);
    std::vector<std::byte> room(bytes * kMostPieces);
    std::vector<RemotePiece> pieces;
    for (std::size_t i = 0; i < kMostPieces; ++i) {
      pieces.push_back({*owner, 0, std::span(room).subspan(i * bytes, bytes)});
    }
    try {
      return read(*owner, pieces);
    } catch (const Error&) {
      if (!reader_.quiet()) new std::vector<std::byte>(std::move(room));  // MPI may write there
      throw;
    }
  }

  /// The median of the last lists, which were the longest.
  double read(int owner, const std::vector<RemotePiece>& pieces) {
    const WaitPolicy policy{.timeout = kLongest};
    std::vector<double> paces;
    std::size_t count = kFewestPieces;
    const double end = now_seconds() + std::chrono::duration<double>(kReading).count();
    for (double begin = now_seconds(); begin < end || paces.size() < kFewestLists;) {
      const auto list = std::span(pieces).first(count);
      reader_.start(list);
      reader_.finish(policy);
      const double now = now_seconds();
      paces.push_back((now - begin) / static_cast<double>(count * list.front().to.size()));
      for (const RemotePiece& piece : list) check(owner, piece.to);
      begin = now_seconds();
      if (begin < end) count = std::min(2 * count, kMostPieces);
    }
    const auto last = std::span(paces).last(kFewestLists);
    std::ranges::sort(last);
    return last[kFewestLists / 2];
  }

  static void check(int owner, std::span<const std::byte> got) {
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i] == expected(owner, i)) continue;
      throw Error(ErrorKind::communication, fmt::format("wrong bytes came from rank {}", owner));
    }
  }

  Communicator& comm_;
  const RemoteMemory& memory_;
  RemoteReader& reader_;
  int node_;
};

/// One transport, tried out.
struct Candidate {
  Transport transport = Transport::two_sided;
  std::unique_ptr<ServedReader> reader;  ///< empty when it does not work everywhere
  double pace = 0;                       ///< seconds a byte of the slowest rank
  std::string fault;
};

class Choosing {
 public:
  Choosing(Communicator& comm, RemoteMemory& memory, ProgressThread& progress,
           const TransportOptions& options)
      : comm_(comm), memory_(memory), progress_(progress), options_(options) {}

  Candidate make(Transport transport) {
    Candidate candidate{.transport = transport};
    auto reader = memory_.make_reader(transport, candidate.fault);
    if (!reader) return candidate;
    candidate.reader = std::make_unique<ServedReader>(std::move(reader), progress_,
                                                      options_.longest_rest, options_.failed);
    return candidate;
  }

  void try_out(Candidate& candidate) {
    if (!candidate.reader) return;
    double pace = 0;
    try {
      pace = Trial(comm_, memory_, **candidate.reader, node_number()).run();
    } catch (const Error& error) {
      candidate.fault = error.happened();
      log(LogLevel::info, "{} reads fail: {}", to_string(candidate.transport), error.what());
    }
    const auto paces = gather_all(comm_, pace);
    candidate.pace = *std::ranges::max_element(paces);
    if (!everywhere(comm_, candidate.fault.empty())) candidate.reader.reset();
  }

  void write_pattern() {
    const auto mine = memory_.mine().first(probe_bytes(memory_, comm_.rank()));
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = expected(comm_.rank(), i);
    memory_.publish();
    comm_.barrier();
  }

 private:
  /// Nodes are numbered by their lowest ranks; those two of whom read from each other should not
  /// both be even, which neighbours are not.
  int node_number() const {
    std::vector<int> lowest(static_cast<std::size_t>(comm_.size()));
    const auto first_near = [&] {
      for (int rank = 0; rank < comm_.rank(); ++rank) {
        if (!memory_.direct(rank).empty()) return rank;
      }
      return comm_.rank();
    };
    lowest = gather_all(comm_, first_near());
    const int mine = lowest[static_cast<std::size_t>(comm_.rank())];
    std::ranges::sort(lowest);
    const auto end = std::unique(lowest.begin(), lowest.end());
    return static_cast<int>(std::lower_bound(lowest.begin(), end, mine) - lowest.begin());
  }

  Communicator& comm_;
  RemoteMemory& memory_;
  ProgressThread& progress_;
  const TransportOptions& options_;
};

std::string in_words(const Candidate& taken, std::span<const Candidate> all) {
  const auto megabytes = [](double pace) { return pace > 0 ? 1e-6 / pace : 0; };
  std::string text = fmt::format("{} ({:.0f} MB/s on the slowest rank", to_string(taken.transport),
                                 megabytes(taken.pace));
  for (const Candidate& other : all) {
    const char* const name = to_string(other.transport);
    if (!other.reader) {
      text += fmt::format("; {} fails: {}", name, other.fault);
    } else if (&other != &taken) {
      text += fmt::format(", {:.0f} {}", megabytes(other.pace), name);
    }
  }
  return text + ")";
}

/// Those that work come first, the faster the earlier.
bool better(const Candidate& a, const Candidate& b) {
  if (!a.reader || !b.reader) return a.reader != nullptr && b.reader == nullptr;
  return a.pace < b.pace;
}

[[noreturn]] void fail_without_transport(const std::string& fault) {
  throw Error(ErrorKind::unsupported, "samples cannot be moved between nodes: " + fault,
              "run on one node, or look at the MPI library's settings for the network");
}

TransportChoice forced(Choosing& choosing, Transport transport) {
  Candidate candidate = choosing.make(transport);
  if (!candidate.reader) fail_without_transport(candidate.fault);
  return {std::move(candidate.reader), fmt::format("{}, as asked for", to_string(transport))};
}

}  // namespace

ServedReader::ServedReader(std::unique_ptr<RemoteReader> reader, ProgressThread& progress,
                           std::chrono::microseconds longest_rest,
                           std::function<void(const Error&)> failed)
    : reader_(std::move(reader)),
      serving_(progress.add(
          [reader = reader_, failed = std::move(failed)] {
            try {
              return reader->serve();
            } catch (const Error& error) {
              if (failed) failed(error);
              throw;
            }
          },
          longest_rest)) {}

TransportChoice choose_transport(Communicator& comm, RemoteMemory& memory, ProgressThread* progress,
                                 const TransportOptions& options) {
  if (!memory.several_nodes()) return {nullptr, "none, since all ranks share one node"};
  collectively(comm, [&] {
    if (progress == nullptr) fail_without_transport("there is no progress thread");
  });
  Choosing choosing(comm, memory, *progress, options);
  if (options.forced) return forced(choosing, *options.forced);
  choosing.write_pattern();
  std::vector<Candidate> candidates;
  for (const Transport transport :
       {Transport::one_sided, Transport::two_sided, Transport::two_sided_short}) {
    choosing.try_out(candidates.emplace_back(choosing.make(transport)));
  }
  Candidate& taken = *std::ranges::min_element(candidates, better);
  if (!taken.reader) fail_without_transport(candidates.back().fault);
  std::string why = in_words(taken, candidates);
  return {std::move(taken.reader), std::move(why)};
}

}  // namespace forebay
