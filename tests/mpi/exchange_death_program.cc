// A rank that dies in the middle of an exchange, without a word: the launcher has to end the job
// within 10 s, with an exit code that is not zero. Rank 1 dies; the others read from it for ever.
#include <csignal>
#include <cstdio>
#include <thread>

#include "exchange/read_buffer.hpp"
#include "forebay/error.hpp"
#include "forebay/mpi_session.hpp"

int main() {
  using forebay::WantedBatch;
  const forebay::MpiSession session;
  const auto world = session.world();
  const auto node = world->split_by_node();
  forebay::ProgressThread progress;
  const auto board = std::make_shared<forebay::FailureBoard>(world, node);
  const auto exchange = std::make_shared<forebay::Exchange>(
      forebay::ExchangeParts{.world = world, .node = node, .board = board, .progress = &progress},
      forebay::ExchangeOptions{.share_bytes = 1 << 20, .sample_bytes = 1 << 16});
  for (int i = 0; i < 16; ++i) exchange->filling().take(1 << 16);
  exchange->open();
  try {
    forebay::ReadBuffer buffer(exchange, {}, [number = 0]() mutable {
      return WantedBatch{.wanted = {{.owner = 1, .index = static_cast<unsigned>(number++ % 16)}}};
    });
    for (int i = 0; buffer.next() != nullptr; ++i) {
      buffer.release();
      if (world->rank() == 1 && i == 20) std::raise(SIGKILL);
    }
  } catch (const forebay::Error& error) {
    std::printf("rank %d: %s\n", world->rank(), error.what());
    return 3;
  }
  return 0;
}
