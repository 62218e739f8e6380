// The baseline: ranks compare, cycle by cycle, what is ready (paper 002, 6.2.2).
#pragma once

#include <memory>
#include <vector>

#include "sync/agreement.hpp"

namespace forebay {

class Negotiation final : public Agreement {
 public:
  /// Collective. options.strategy: gs and nbcs as such, all others as `negotiate`.
  explicit Negotiation(const AgreementContext& context);
  ~Negotiation() override;

  bool submit(std::shared_ptr<Request> request) override;
  Rest step() override;
  bool closed() const override;
  void fail(const Error& error) override;
  std::string explain() const override;

  /// Whether no cycle is on its way: step() never goes past the end of a cycle, at which all
  /// ranks have completed and handed out the same operations.
  bool between_cycles() const;
  /// Takes back all requests that are not done, also those of the coordinator's tables: they are
  /// submitted anew, here or elsewhere. Between cycles, on all ranks after the same cycle.
  std::vector<std::shared_ptr<Request>> take_back();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace forebay
