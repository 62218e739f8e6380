// Ranks that are connected without MPI: by TCP, whatever has started them.
//
//   auto rendezvous = forebay::file_rendezvous("/shared/run-17");
//   auto world = forebay::connect_ranks(*rendezvous, {.rank = 3, .size = 8, .job = "run-17/0"});
//
// docs/network.md tells what is listened on, and what protects it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "forebay/communicator.hpp"
#include "forebay/rendezvous.hpp"

namespace forebay {

struct ConnectOptions {
  int rank = 0;
  int size = 1;
  /// Any text that is the same on all ranks, and another one for each job that uses the rendezvous,
  /// and for each start of it.
  std::string job = "job";
  /// The address to listen on, as number or name. Empty: loopback where all ranks are on one node,
  /// else that of the interface over which the rendezvous is reached, or, where that has no host,
  /// the one that this host's name stands for.
  std::string listen_on = {};
  /// For all ranks to come; and then that of the communicator, until it is given another one.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
  /// A placement policy (forebay/placement.hpp): the network thread, "fb-net", runs on the cores
  /// for progress.
  std::string placement = "shared";
};

/// The communicator of all ranks. Connects each with each, by connections that are authenticated
/// both ways; then nothing listens any more. The connections end with the last communicator that
/// was made of it, in at most 5 s. Not to be used in a forked child.
///
/// Collective. Throws usage for ranks that do not fit together, and communication, naming the ranks
/// that have not come.
std::shared_ptr<Communicator> connect_ranks(Rendezvous& rendezvous, const ConnectOptions& options);

}  // namespace forebay
