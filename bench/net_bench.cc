// What connections without MPI reach between two ranks, beside a plain loop of send() and recv() on
// a socket of the same program.
//
//   network_nodes.py --rate 1gbit -- net_bench --host 10.77.0.1 [--seconds S]
//
//   message   Communicator::send of the last rank, try_receive of rank 0
//   read      pieces out of the memory of the last rank, in batches of 8 MB, as the exchange reads
//   raw       the last rank sends as much as rank 0 asks for, 8 MB at a time
//
// All three are measured in turns, since other load may change. Rank 0 prints one JSON object.
// Started by whatever tells ranks by RANK and WORLD_SIZE, or as Open MPI or MPICH do; nothing of
// MPI is used. --host and --port: where rank 0 serves the rendezvous.
#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/figures.hpp"
#include "comm/messages.hpp"
#include "comm/net/socket.hpp"
#include "comm/remote_memory.hpp"
#include "comm/values.hpp"
#include "core/clock.hpp"
#include "forebay/connect.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBatchBytes = std::size_t{8} << 20;
constexpr std::size_t kMemoryBytes = std::size_t{64} << 20;

int number_from(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const char* text = std::getenv(name)) return std::atoi(text);
  }
  throw Error(ErrorKind::usage, "no launcher tells the rank", "set RANK and WORLD_SIZE");
}

void wait_for(const net::Descriptor& socket, short events) {
  pollfd watched{.fd = socket.get(), .events = events, .revents = 0};
  ::poll(&watched, 1, -1);
}

void send_all(const net::Descriptor& socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto sent = net::send_some(socket, bytes).value();
    if (sent == 0) wait_for(socket, POLLOUT);
    bytes = bytes.subspan(sent);
  }
}

void receive_all(const net::Descriptor& socket, std::span<std::byte> room) {
  while (!room.empty()) {
    const auto got = net::receive_some(socket, room).value();
    if (got == 0) wait_for(socket, POLLIN);
    room = room.subspan(got);
  }
}

/// A connection between rank 0 and the last one, beside those of the communicator.
net::Descriptor raw_connection(Communicator& world, const std::string& host) {
  const int last = world.size() - 1;
  net::Descriptor listener;
  std::string where;
  if (world.rank() == last) {
    listener = net::listen_at(*net::address_towards(net::Address::of(host, 0)));
    where = net::Address::of_socket(listener.get()).to_text();
  }
  where = broadcast_text(world, where, last);
  if (world.rank() == last) {
    wait_for(listener, POLLIN);
    return net::accept_from(listener);
  }
  if (world.rank() != 0) return net::Descriptor();
  auto socket = net::begin_to_connect(*net::Address::parse(where));
  wait_for(socket, POLLOUT);
  return socket;
}

class NetBench {
 public:
  NetBench(std::shared_ptr<Communicator> world, const std::string& host, double seconds)
      : world_(std::move(world)),
        node_(world_->split(world_->rank(), 0)),
        memory_(world_->expose(*node_, kMemoryBytes, SharedMemoryKind::posix)),
        raw_(raw_connection(*world_, host)),
        seconds_(seconds),
        room_(kBatchBytes) {
    std::string why;
    reader_ = memory_->make_reader(Transport::one_sided, why);
    memory_->reserve(0, kMemoryBytes);
    std::ranges::fill(memory_->mine(), static_cast<std::byte>(world_->rank()));
    world_->barrier();
  }

  Json run(std::size_t bytes) {
    constexpr int kTurns = 7;
    Series message, read, raw, message_ratio, read_ratio;
    int batches = 2;
    rate(&NetBench::move_raw, bytes, 1);
    const double first = rate(&NetBench::move_raw, bytes, batches);
    batches = std::max(2, static_cast<int>(first * 1e6 * seconds_ / kBatchBytes));
    share_value(*world_, batches);
    for (int turn = 0; turn < kTurns; ++turn) {
      raw.add(rate(&NetBench::move_raw, bytes, batches));
      message.add(rate(&NetBench::move_messages, bytes, batches));
      read.add(rate(&NetBench::move_pieces, bytes, batches));
      message_ratio.add(message.values().back() / raw.values().back());
      read_ratio.add(read.values().back() / raw.values().back());
    }
    return {{"bytes", bytes},
            {"raw_mb_s", raw.median()},
            {"message_mb_s", message.median()},
            {"read_mb_s", read.median()},
            {"message_over_raw", message_ratio.json()},
            {"read_over_raw", read_ratio.json()}};
  }

 private:
  using Move = void (NetBench::*)(std::size_t bytes);

  /// MB/s of rank 0.
  double rate(Move move, std::size_t bytes, int batches) {
    world_->barrier();
    const double begin = now_seconds();
    for (int i = 0; i < batches; ++i) (this->*move)(bytes);
    const double seconds = now_seconds() - begin;
    world_->barrier();
    return static_cast<double>(batches) * kBatchBytes / seconds / 1e6;
  }

  bool is_last() const { return world_->rank() == world_->size() - 1; }

  void move_raw(std::size_t bytes) {
    std::byte word{1};
    if (world_->rank() == 0) {
      send_all(raw_, {&word, 1});
      for (std::size_t done = 0; done < kBatchBytes; done += bytes) {
        receive_all(raw_, std::span(room_).subspan(done, bytes));
      }
    } else if (is_last()) {
      receive_all(raw_, {&word, 1});
      for (std::size_t done = 0; done < kBatchBytes; done += bytes) {
        send_all(raw_, memory_->mine().subspan(done, bytes));
      }
    }
  }

  void move_messages(std::size_t bytes) {
    const int last = world_->size() - 1;
    const auto limit = std::chrono::seconds(60);
    if (world_->rank() == 0) {
      world_->send(last, {});
      for (std::size_t done = 0; done < kBatchBytes; done += bytes) {
        if (receive(*world_, last, limit, {}, "a message")->size() != bytes) std::abort();
      }
    } else if (is_last()) {
      receive(*world_, 0, limit, {}, "the word");
      for (std::size_t done = 0; done < kBatchBytes; done += bytes) {
        world_->send(0, memory_->mine().subspan(done, bytes));
      }
    }
  }

  void move_pieces(std::size_t bytes) {
    if (world_->rank() != 0) return;
    std::vector<RemotePiece> pieces;
    for (std::size_t done = 0; done < kBatchBytes; done += bytes) {
      pieces.push_back({world_->size() - 1, done * 3 % (kMemoryBytes - bytes),
                        std::span(room_).subspan(done, bytes)});
    }
    reader_->start(pieces);
    reader_->finish({.timeout = std::chrono::seconds(60), .interrupt = {}});
    if (room_.back() != static_cast<std::byte>(world_->size() - 1)) std::abort();
  }

  std::shared_ptr<Communicator> world_;
  std::shared_ptr<Communicator> node_;
  std::unique_ptr<RemoteMemory> memory_;
  std::unique_ptr<RemoteReader> reader_;
  net::Descriptor raw_;
  double seconds_;
  std::vector<std::byte> room_;
};

int run(std::span<char*> words) {
  const int rank = number_from({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"});
  const int size = number_from({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
  const std::string host = option(words, "--host", "127.0.0.1");
  auto port = static_cast<std::uint16_t>(std::stoi(option(words, "--port", "29533")));
  const auto rendezvous = rank == 0 ? serve_rendezvous(host, port) : join_rendezvous(host, port);
  const auto world =
      connect_ranks(*rendezvous, {.rank = rank, .size = size, .timeout = std::chrono::seconds(60)});
  NetBench bench(world, host, std::stod(option(words, "--seconds", "0.5")));
  Json sizes = Json::array();
  for (const std::size_t bytes :
       {std::size_t{64} << 10, std::size_t{256} << 10, std::size_t{1} << 20}) {
    sizes.push_back(bench.run(bytes));
  }
  if (rank == 0) fmt::print("{}\n", Json{{"sizes", sizes}}.dump(1));
  world->barrier();
  return 0;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  try {
    return forebay::run({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    fmt::print(stderr, "net_bench: {}\n", error.what());
    return 1;
  }
}
