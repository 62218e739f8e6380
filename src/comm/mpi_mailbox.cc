#include "comm/mpi_mailbox.hpp"

#include <algorithm>

#include "comm/messages.hpp"
#include "comm/mpi_communicator.hpp"
#include "comm/waiting.hpp"
#include "forebay/error.hpp"

namespace forebay {

bool MpiMailbox::complete(Transfer& transfer) {
  int done = 0;
  check_mpi(MPI_Test(&transfer.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

void MpiMailbox::send(int to, std::span<const std::byte> message) {
  require_sendable(message.size());
  const std::lock_guard lock(mutex_);
  transfers_->outgoing.remove_if(complete);
  Transfer& transfer = transfers_->outgoing.emplace_back();
  transfer.message.assign(message.begin(), message.end());
  check_mpi(MPI_Isend(transfer.message.data(), static_cast<int>(message.size()), MPI_BYTE, to, tag_,
                      comm_, &transfer.request),
            "MPI_Isend");
}

bool MpiMailbox::begin_to_receive(int from) {
  int waiting = 0;
  MPI_Message matched = MPI_MESSAGE_NULL;
  MPI_Status status;
  // The first look may only make MPICH take in what has come, and not show it yet.
  for (int look = 0; look < 2 && waiting == 0; ++look) {
    check_mpi(MPI_Improbe(from, tag_, comm_, &waiting, &matched, &status), "MPI_Improbe");
  }
  if (waiting == 0) return false;
  int bytes = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  Transfer& transfer = transfers_->incoming[from];
  transfer.message.resize(static_cast<std::size_t>(std::max(bytes, 0)));
  check_mpi(MPI_Imrecv(transfer.message.data(), bytes, MPI_BYTE, &matched, &transfer.request),
            "MPI_Imrecv");
  return true;
}

std::optional<std::vector<std::byte>> MpiMailbox::receive(int from) {
  const std::lock_guard lock(mutex_);
  // Long messages move while their sender looks for others.
  transfers_->outgoing.remove_if(complete);
  if (!transfers_->incoming.contains(from) && !begin_to_receive(from)) return std::nullopt;
  const auto arriving = transfers_->incoming.find(from);
  if (!complete(arriving->second)) return std::nullopt;
  auto message = std::move(arriving->second.message);
  transfers_->incoming.erase(arriving);
  return message;
}

void MpiMailbox::drain() {
  while (receive(MPI_ANY_SOURCE)) {
  }
}

bool MpiMailbox::all_complete() {
  const std::lock_guard lock(mutex_);
  transfers_->outgoing.remove_if(complete);
  bool received = true;
  for (auto& [from, transfer] : transfers_->incoming) received = complete(transfer) && received;
  return transfers_->outgoing.empty() && received;
}

bool MpiMailbox::settle(std::chrono::milliseconds limit) {
  const WaitPolicy policy{.timeout = limit};
  Waiting waiting(policy, "messages that are under way");
  try {
    while (!all_complete()) waiting.step();
  } catch (const Error&) {
    return false;
  }
  return true;
}

void MpiMailbox::leak() {
  const std::lock_guard lock(mutex_);
  static_cast<void>(transfers_.release());
  transfers_ = std::make_unique<Transfers>();
}

}  // namespace forebay
