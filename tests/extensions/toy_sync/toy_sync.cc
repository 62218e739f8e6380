// Rank 0 tells the others the names of what it starts, in its order; they start the same as soon as
// they have it.
//
//   rank 0:   conv2, conv1 come -> starts them, sends "conv2", "conv1"
//   others:   conv1 comes, "conv2" arrives: waits; conv2 comes: starts conv2, then conv1
//
// To close, ranks send the name of the close to rank 0, which sends it back when all have.
#include "toy_sync.hpp"

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "forebay/sync_agreement.hpp"

namespace toy {
namespace {

using namespace forebay;

class Leader final : public Agreement {
 public:
  explicit Leader(const AgreementContext& context)
      : line_(context.line), comm_(context.comm->split(0, context.comm->rank())) {
    comm_->carry_messages();
  }

  bool submit(std::shared_ptr<Request> request) override {
    const std::lock_guard lock(mutex_);
    if (failure_) {
      request->fail(*failure_);
    } else {
      came_.push_back(std::move(request));
    }
    return true;
  }

  Rest step() override {
    take();
    for (int rank = 0; rank < comm_->size(); ++rank) {
      while (const auto message = comm_->try_receive(rank)) hear(*message);
    }
    while (!order_.empty() && waiting_.contains(order_.front())) start_next();
    return waiting_.empty() ? kAnyRest : Rest(200);
  }

  bool closed() const override { return closed_; }

  void fail(const Error& error) override {
    for (const auto& [name, request] : waiting_) request->fail(error);
    const std::lock_guard lock(mutex_);
    for (const auto& request : came_) request->fail(error);
    failure_ = error;
  }

  std::string explain() const override { return "in the order of rank 0"; }

 private:
  bool leads() const { return comm_->rank() == 0; }

  void take() {
    std::deque<std::shared_ptr<Request>> came;
    {
      const std::lock_guard lock(mutex_);
      came.swap(came_);
    }
    for (auto& request : came) {
      const std::string name = request->tensor.name;
      const bool closes = request->operation == SyncOperation::close;
      waiting_.emplace(name, std::move(request));
      if (closes && leads()) {
        count_close(name);
      } else if (closes) {
        send(0, name);
      } else if (leads()) {
        lead(name);
      }
    }
  }

  void hear(std::span<const std::byte> message) {
    const std::string name(reinterpret_cast<const char*>(message.data()), message.size());
    if (leads()) {
      count_close(name);
    } else {
      order_.push_back(name);
    }
  }

  void count_close(const std::string& name) {
    if (++closing_ == comm_->size()) lead(name);
  }

  void lead(const std::string& name) {
    order_.push_back(name);
    for (int rank = 1; rank < comm_->size(); ++rank) send(rank, name);
  }

  void send(int to, const std::string& name) { comm_->send(to, std::as_bytes(std::span(name))); }

  void start_next() {
    const auto request = waiting_.extract(order_.front()).mapped();
    order_.pop_front();
    switch (request->operation) {
      case SyncOperation::close:
        closed_ = true;
        return request->finish();
      case SyncOperation::join:
      case SyncOperation::allgather:
        return request->fail(Error(ErrorKind::unsupported, "a toy does not do that"));
      default:
        break;
    }
    line_.start({.operation = request->operation,
                 .type = request->tensor.type,
                 .reduction = request->reduction,
                 .root = request->root,
                 .parts = {{request, request->tensor.elements()}}});
  }

  TransferLine& line_;
  const std::shared_ptr<Communicator> comm_;
  std::mutex mutex_;  ///< of what follows
  std::deque<std::shared_ptr<Request>> came_;
  std::optional<Error> failure_;

  // Of the progress thread.
  std::map<std::string, std::shared_ptr<Request>> waiting_;
  std::deque<std::string> order_;
  int closing_ = 0;
  bool closed_ = false;
};

}  // namespace

SyncWay leader_way() {
  return {.name = "leader",
          .help = "in the order of rank 0",
          .agree = [](const AgreementContext& context) -> std::unique_ptr<Agreement> {
            return std::make_unique<Leader>(context);
          }};
}

}  // namespace toy
