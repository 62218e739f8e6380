#include "comm/trace_of_ranks.hpp"

#include <span>
#include <vector>

namespace forebay {

void write_trace_of_ranks(Communicator& comm, const Trace& trace, const std::string& path) {
  const std::string mine = trace.events();
  std::vector<std::string> all;
  for (const auto& bytes : comm.gather(std::as_bytes(std::span(mine)), 0)) {
    all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  collectively(comm, [&] {
    if (comm.rank() == 0) write_trace(path, all);
  });
}

}  // namespace forebay
