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
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "comm/messages.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/remote_memory.hpp"
#include "comm/waiting.hpp"
#include "core/copy_values.hpp"
#include "core/log.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;

/// The head of a request; pieces follow.
struct Head {
  std::uint64_t rank = 0;
  std::uint64_t number = 0;
};

struct AskedPiece {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// Open MPI sends up to 4 KB at once between processes of one machine.
constexpr std::size_t kRequestPieces = (4000 - sizeof(Head)) / sizeof(AskedPiece);
// A message of its own costs about as much as copying this many bytes twice.
constexpr std::size_t kPackBelow = std::size_t{16} << 10;
constexpr std::size_t kPackedBytes = std::size_t{512} << 10;
constexpr std::size_t kRequestBytes = std::size_t{4} << 20;
constexpr std::size_t kUnderWay = 8;  // requests

constexpr int kFirstAnswerTag = 8192;
constexpr std::uint64_t kAnswerTags = 8192;  // MPI promises tags up to 32767

constexpr milliseconds kLongestSettling{1000};

int answer_tag(std::uint64_t number) {
  return kFirstAnswerTag + static_cast<int>(number % kAnswerTags);
}

bool is_packed(std::uint64_t bytes) { return bytes < kPackBelow; }

bool some_done(std::vector<MPI_Request>& requests) {
  std::vector<int> which(requests.size());
  int count = 0;
  check_mpi(MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &count, which.data(),
                         MPI_STATUSES_IGNORE),
            "MPI_Testsome");
  return count != MPI_UNDEFINED && count > 0;
}

bool all_done(std::vector<MPI_Request>& requests) {
  int done = 0;
  check_mpi(
      MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
      "MPI_Testall");
  return done != 0;
}

std::vector<AskedPiece> parse(std::span<const std::byte> message, Head& head) {
  const std::size_t list = message.size() - std::min(sizeof(head), message.size());
  if (message.size() < sizeof(head) || list % sizeof(AskedPiece) != 0) {
    throw Error(ErrorKind::communication, "a request for samples has a wrong length",
                "this is a fault of Forebay: please report it");
  }
  std::memcpy(&head, message.data(), sizeof(head));
  std::vector<AskedPiece> pieces(list / sizeof(AskedPiece));
  if (list > 0) std::memcpy(pieces.data(), message.data() + sizeof(head), list);
  return pieces;
}

/// The bytes of those pieces that are packed. Throws when one is not in this rank's memory of
/// `size` bytes, or is for none of so many ranks.
std::size_t checked_packed_bytes(const Head& head, std::span<const AskedPiece> pieces,
                                 std::size_t size, int ranks) {
  std::size_t packed = 0;
  for (const AskedPiece& piece : pieces) {
    if (piece.offset > size || piece.bytes > size - piece.offset ||
        head.rank >= static_cast<std::uint64_t>(ranks)) {
      throw Error(ErrorKind::communication,
                  fmt::format("rank {} asks for {} bytes at {} of {}", head.rank, piece.bytes,
                              piece.offset, size),
                  "this is a fault of Forebay: please report it");
    }
    if (is_packed(piece.bytes)) packed += piece.bytes;
  }
  return packed;
}

class MpiTwoSidedReader final : public RemoteReader {
 public:
  MpiTwoSidedReader(std::shared_ptr<MpiCommunicator> comm, std::span<const std::byte> mine,
                    std::size_t longest_message)
      : comm_(std::move(comm)), mine_(mine), longest_message_(longest_message) {
    comm_->carry_messages();
  }

  ~MpiTwoSidedReader() override {
    if (mpi_is_over() || mpi_gave_up()) {
      static_cast<void>(answers_.release());
      return;
    }
    try {
      const WaitPolicy policy{.timeout = kLongestSettling};
      Waiting waiting(policy, "answers that are under way");
      while (send_on()) waiting.step();
    } catch (const Error& error) {
      log(LogLevel::warning, "samples were sent that nobody has taken: {}", error.what());
      set_mpi_gave_up();
      static_cast<void>(answers_.release());
    }
  }

  void start(std::span<const RemotePiece> pieces) override {
    if (broken_) throw Error(ErrorKind::cancelled, "an earlier read of other ranks' memory failed");
    pieces_.assign(pieces.begin(), pieces.end());
    divide();
    ask_more();
  }

  void finish(const WaitPolicy& policy) override {
    try {
      while (!asked_->empty()) {
        const int owner = pieces_[asked_->front().begin].owner;
        BriskWaiting waiting(policy, fmt::format("samples of rank {}", owner));
        while (!take_arrived()) waiting.step();
        ask_more();
      }
    } catch (...) {
      give_up();
      throw;
    }
  }

  bool serve() override {
    if (mpi_is_over()) return false;
    bool asked = false;
    while (const auto request = comm_->poll_notice()) {
      asked = true;
      answer(*request);
    }
    return send_on() || asked;
  }

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

  /// The owners take turns, so that they work side by side.
  void divide() {
    to_ask_.clear();
    std::map<int, std::size_t> round;  // by owner
    std::vector<std::pair<std::size_t, Request>> requests;
    for (std::size_t begin = 0; begin < pieces_.size();) {
      Request request = next_request(begin);
      begin = request.end;
      requests.emplace_back(round[pieces_[request.begin].owner]++, std::move(request));
    }
    std::ranges::stable_sort(requests, {}, &std::pair<std::size_t, Request>::first);
    for (auto& [when, request] : requests) to_ask_.push_back(std::move(request));
  }

  Request next_request(std::size_t begin) const {
    Request request{.begin = begin, .end = begin};
    std::size_t bytes = 0;
    while (request.end < pieces_.size() && pieces_[request.end].owner == pieces_[begin].owner &&
           request.end - begin < kRequestPieces && bytes < kRequestBytes &&
           request.packed_bytes < kPackedBytes) {
      const std::size_t size = pieces_[request.end].to.size();
      if (is_packed(size)) request.packed_bytes += size;
      bytes += size;
      ++request.end;
    }
    return request;
  }

  void ask_more() {
    while (!to_ask_.empty() && asked_->size() < kUnderWay) {
      asked_->push_back(std::move(to_ask_.front()));
      to_ask_.pop_front();
      ask(asked_->back());
    }
  }

  void ask(Request& request) {
    const int owner = pieces_[request.begin].owner;
    const Head head{.rank = static_cast<std::uint64_t>(comm_->rank()), .number = ++number_};
    std::vector<std::byte> message(sizeof(head));
    std::memcpy(message.data(), &head, sizeof(head));
    const auto receive = [&](std::span<std::byte> whole) {
      in_pieces(whole, longest_message_, [&](std::span<std::byte> to) {
        check_mpi(MPI_Irecv(to.data(), static_cast<int>(to.size()), MPI_BYTE, owner,
                            answer_tag(head.number), comm_->handle(),
                            &request.receives.emplace_back(MPI_REQUEST_NULL)),
                  "MPI_Irecv");
      });
    };
    if (request.packed_bytes > 0) {
      request.packed = arriving_.take(request.packed_bytes);
      receive(std::span(request.packed).first(request.packed_bytes));
    }
    for (std::size_t i = request.begin; i < request.end; ++i) {
      const AskedPiece piece{.offset = pieces_[i].offset, .bytes = pieces_[i].to.size()};
      const auto bytes = std::as_bytes(std::span(&piece, 1));
      message.insert(message.end(), bytes.begin(), bytes.end());
      if (!is_packed(piece.bytes)) receive(pieces_[i].to);
    }
    comm_->send_notice(owner, message);
  }

  /// Whether anything has come.
  bool take_arrived() {
    bool arrived = false;
    std::erase_if(*asked_, [&](Request& request) {
      arrived = some_done(request.receives) || arrived;
      if (!all_done(request.receives)) return false;
      arrived = true;
      unpack(request);
      arriving_.give_back(std::move(request.packed));
      return true;
    });
    return arrived;
  }

  void unpack(const Request& request) {
    std::size_t at = 0;
    for (std::size_t i = request.begin; i < request.end; ++i) {
      const auto to = pieces_[i].to;
      if (to.empty() || !is_packed(to.size())) continue;
      std::memcpy(to.data(), request.packed.data() + at, to.size());
      at += to.size();
    }
  }

  bool settle(const WaitPolicy& policy) {
    try {
      for (Waiting waiting(policy, "answers"); !asked_->empty(); waiting.step()) take_arrived();
    } catch (const Error&) {
      return false;
    }
    return true;
  }

  // What is under way mostly arrives, when it was this rank that has lost patience. A receive that
  // nothing has arrived for can be taken back; one in the middle cannot.
  void give_up() {
    broken_ = true;
    to_ask_.clear();
    const WaitPolicy policy{.timeout = kLongestSettling};
    if (settle(policy)) return;
    for (Request& request : *asked_) {
      for (MPI_Request& receive : request.receives) {
        if (receive != MPI_REQUEST_NULL) MPI_Cancel(&receive);
      }
    }
    if (settle(policy)) return;
    quiet_ = false;
    static_cast<void>(asked_.release());
    asked_ = std::make_unique<std::list<Request>>();
    set_mpi_gave_up();
  }

  void answer(std::span<const std::byte> message) {
    Head head;
    const auto pieces = parse(message, head);
    const std::size_t packed_bytes =
        checked_packed_bytes(head, pieces, mine_.size(), comm_->size());
    Answer& answer = answers_->emplace_back();
    const auto send = [&](std::span<const std::byte> whole) {
      in_pieces(whole, longest_message_, [&](std::span<const std::byte> from) {
        check_mpi(MPI_Isend(from.data(), static_cast<int>(from.size()), MPI_BYTE,
                            static_cast<int>(head.rank), answer_tag(head.number), comm_->handle(),
                            &answer.sends.emplace_back(MPI_REQUEST_NULL)),
                  "MPI_Isend");
      });
    };
    if (packed_bytes > 0) {
      answer.packed = leaving_.take(packed_bytes);
      std::span<std::byte> to = answer.packed;
      for (const AskedPiece& piece : pieces) {
        if (!is_packed(piece.bytes)) continue;
        copy_values(mine_.subspan(piece.offset, piece.bytes), to);
        to = to.subspan(piece.bytes);
      }
      send(std::span(answer.packed).first(packed_bytes));
    }
    for (const AskedPiece& piece : pieces) {
      if (!is_packed(piece.bytes)) send(mine_.subspan(piece.offset, piece.bytes));
    }
  }

  /// Whether answers are still under way.
  bool send_on() {
    std::erase_if(*answers_, [this](Answer& answer) {
      if (!all_done(answer.sends)) return false;
      leaving_.give_back(std::move(answer.packed));
      return true;
    });
    return !answers_->empty();
  }

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

}  // namespace

std::unique_ptr<RemoteReader> mpi_two_sided_reader(std::shared_ptr<MpiCommunicator> comm,
                                                   std::span<const std::byte> mine,
                                                   std::size_t longest_message) {
  return std::make_unique<MpiTwoSidedReader>(std::move(comm), mine, longest_message);
}

}  // namespace forebay
