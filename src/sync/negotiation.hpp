// The baseline: ranks compare, cycle by cycle, what is ready (paper 002, 6.2.2), and two ways to do
// so at less cost (6.3.1, 6.3.2).
//
//   rest -> compare -> [invalidate] -> [ask -> answer] -> move -> [pace] -> rest
//
//   compare      one bitwise allreduce: known tensors that are ready, and what else is to be done
//   invalidate   known tensors that somebody wants to be something else, or waits too long for,
//                are known no longer
//   ask, answer  ranks tell rank 0 what they newly have; it answers what all of them do now
//   move         transfers, one after the other
//   pace         gs: ranks agree on the shortest of their rests
//
// A cycle lasts `options.cycle` at least: the rest is what remains of it. While a rank waits for
// the others it does not rest at all, as in a blocking MPI_Allreduce; with nbcs it rests for a
// fifth of a millisecond between two looks.
//
// A rank that has joined says that it is ready for everything, and adds neutral elements.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "forebay/sync_agreement.hpp"

namespace forebay {

enum class CycleKind : std::uint8_t { plain, gs, nbcs };

class Negotiation final : public Agreement {
 public:
  /// Collective.
  explicit Negotiation(const AgreementContext& context, CycleKind kind = CycleKind::plain);
  ~Negotiation() override;

  bool submit(std::shared_ptr<Request> request) override;
  Rest step() override;
  bool closed() const override;
  void fail(const Error& error) override;
  std::string explain() const override;

  /// Whether no cycle is on its way: step() never goes past the end of a cycle, at which all
  /// ranks have completed and handed out the same operations.
  bool between_cycles() const;
  /// Takes back all requests that are not done, also those that the coordinator knows of, and joins
  /// that not all ranks have asked for: they are to be submitted anew, here or elsewhere. Between
  /// cycles, on all ranks after the same cycle.
  std::vector<std::shared_ptr<Request>> take_back();
  /// Names of what others have done since the last call while this rank, which has joined, added
  /// neutral elements.
  std::vector<std::string> take_without();

 private:
  class Cycles;
  std::unique_ptr<Cycles> cycles_;
};

}  // namespace forebay
