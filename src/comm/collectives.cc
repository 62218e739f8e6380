#include <cstdint>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

std::span<std::byte> writable_bytes(std::string& text) {
  return std::as_writable_bytes(std::span(text.data(), text.size()));
}

}  // namespace

std::string broadcast_text(Communicator& comm, const std::string& text, int root) {
  std::uint64_t size = text.size();
  comm.broadcast(std::as_writable_bytes(std::span(&size, 1)), root);
  std::string result = comm.rank() == root ? text : std::string(size, '\0');
  if (size > 0) comm.broadcast(writable_bytes(result), root);
  return result;
}

void collectively(Communicator& comm, const std::function<void()>& step) {
  std::string failure;
  try {
    step();
  } catch (const Error& error) {
    failure = serialize(error.at_rank(comm.rank()));
  } catch (const std::exception& error) {
    failure = serialize(Error(ErrorKind::io, error.what(), "", {.rank = comm.rank()}));
  }
  const std::uint8_t failed = failure.empty() ? 0 : 1;
  std::vector<std::uint8_t> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&failed, 1)), std::as_writable_bytes(std::span(all)));
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (all[static_cast<std::size_t>(rank)] != 0) {
      throw parse_error(broadcast_text(comm, failure, rank));
    }
  }
}

}  // namespace forebay
