#include "forebay/connect.hpp"

#include <fmt/format.h>

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "comm/net/connector.hpp"
#include "comm/net/group.hpp"
#include "comm/net/meeting.hpp"
#include "comm/net/mesh.hpp"
#include "comm/net/net_communicator.hpp"
#include "core/placement.hpp"
#include "forebay/error.hpp"
#include "forebay/placement.hpp"

namespace forebay {
namespace net {
namespace {

/// That of the world; those that ranks make count from 2^40.
constexpr std::uint64_t kWorldNumber = 1;

void check_options(const ConnectOptions& options) {
  if (options.size >= 1 && options.rank >= 0 && options.rank < options.size) return;
  throw Error(ErrorKind::usage, fmt::format("rank {} of {} ranks", options.rank, options.size),
              "ranks count from 0 to the number of ranks minus one");
}

std::vector<Descriptor> connect_once(Meeting& meeting, const ConnectOptions& options) {
  const JobSecret secret = meeting.begin();
  Descriptor listener = listen_at(meeting.find_address());
  auto addresses = meeting.share_address(Address::of_socket(listener.get()));
  Connector connector(secret, options.rank, std::move(listener), std::move(addresses),
                      {.deadline = meeting.deadline(), .look = [&meeting] { meeting.look(); }});
  return connector.connect_all();
}

std::vector<Descriptor> connect_all(Meeting& meeting, const ConnectOptions& options) {
  for (;;) {
    try {
      return connect_once(meeting, options);
    } catch (const Meeting::StartedAnew&) {
      continue;  // what was read before had been left by another start
    }
  }
}

std::shared_ptr<Communicator> world_of(std::vector<Descriptor> connections,
                                       const ConnectOptions& options) {
  const auto placement = Placement::of(CorePlan::parse(options.placement), Component::progress);
  auto mesh = Mesh::make(options.rank, std::move(connections), placement);
  std::vector<int> members(static_cast<std::size_t>(options.size));
  std::iota(members.begin(), members.end(), 0);
  auto group =
      std::make_shared<Group>(std::move(mesh), std::move(members), options.rank, kWorldNumber);
  return std::make_shared<NetCommunicator>(std::move(group),
                                           WaitPolicy{.timeout = options.timeout, .interrupt = {}});
}

}  // namespace
}  // namespace net

std::shared_ptr<Communicator> connect_ranks(Rendezvous& rendezvous, const ConnectOptions& options) {
  net::check_options(options);
  if (options.size == 1) return net::world_of(std::vector<net::Descriptor>(1), options);
  net::Meeting meeting(rendezvous, options);
  try {
    auto world = net::world_of(net::connect_all(meeting, options), options);
    world->set_timeout(meeting.left());
    world->barrier();  // before it, others may still need what is at the rendezvous
    world->set_timeout(options.timeout);
    meeting.clean_up();
    return world;
  } catch (const Error& error) {
    meeting.fail(error);
    throw;
  }
}

}  // namespace forebay
