// RemoteReader that works wherever messages do: the owner answers.
//
//   reader                                          owner's progress thread: serve()
//   posts receives for all that it asks for
//   request: notice {rank, number, pieces}  ----->  checks the pieces against its memory
//   one message with the small pieces, packed <---  gathers them
//   one message for each larger piece     <-------  sends it straight out of its memory
//
// Both sides know from the list which pieces are packed, and where a message is cut that would be
// too long: over TCP through UCX, messages of 16 KB move up to twice as fast as those of 64 KB, for
// which sender and receiver first agree; inside one machine longer ones are faster. Answers carry
// the request's number in their tag, so that those to a request that was given up meet no other
// one. A request is short enough to travel at once, without the owner looking first; several are
// under way at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "comm/messages.hpp"
#include "comm/mpi_communicator.hpp"
#include "comm/remote_memory.hpp"

namespace forebay {

class MpiTwoSidedReader final : public RemoteReader {
 public:
  /// Short enough for MPI to send at once, where a longer one waits for its receiver's word first.
  static constexpr std::size_t kShortMessage = std::size_t{16} << 10;

  /// `comm` belongs to this object alone; `mine`, what others may ask for, outlives it.
  /// `longest_message`: of an answer, in bytes; the same on all ranks.
  MpiTwoSidedReader(std::shared_ptr<MpiCommunicator> comm, std::span<const std::byte> mine,
                    std::size_t longest_message = kLongestMessage);
  ~MpiTwoSidedReader() override;

  void start(std::span<const RemotePiece> pieces) override;
  void finish(const WaitPolicy& policy) override;
  bool serve() override;
  bool quiet() const override { return quiet_; }

 private:
  /// Consecutive pieces of one owner.
  struct Request {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t packed_bytes = 0;
    SpareBuffers::Buffer packed;
    std::vector<MPI_Request> receives;
  };
  struct Answer {
    SpareBuffers::Buffer packed;
    std::vector<MPI_Request> sends;
  };

  void divide();
  Request next_request(std::size_t begin) const;
  void ask_more();
  void ask(Request& request);
  bool take_arrived();
  void unpack(const Request& request);
  bool settle(const WaitPolicy& policy);
  void give_up();
  void answer(std::span<const std::byte> message);
  bool send_on();

  std::shared_ptr<MpiCommunicator> comm_;
  std::span<const std::byte> mine_;
  std::size_t longest_message_;
  std::vector<RemotePiece> pieces_;
  std::deque<Request> to_ask_;
  SpareBuffers arriving_;  ///< of asked_
  std::unique_ptr<std::list<Request>> asked_ = std::make_unique<std::list<Request>>();
  std::uint64_t number_ = 0;
  bool broken_ = false;
  bool quiet_ = true;
  SpareBuffers leaving_;  ///< of answers_
  std::unique_ptr<std::list<Answer>> answers_ = std::make_unique<std::list<Answer>>();
};

}  // namespace forebay
