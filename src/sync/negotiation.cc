#include "sync/negotiation.hpp"

#include <fmt/format.h>

#include "sync/cycles.hpp"

namespace forebay {

Negotiation::Negotiation(const AgreementContext& context, CycleKind kind)
    : cycles_(std::make_unique<Cycles>(context, kind)) {}

Negotiation::~Negotiation() = default;

// A request waits for the next cycle, so nobody has to be woken for it.
bool Negotiation::submit(std::shared_ptr<Request> request) {
  cycles_->queue.push(std::move(request));
  return false;
}

Agreement::Rest Negotiation::step() { return cycles_->step(); }

bool Negotiation::closed() const { return cycles_->closed(); }

void Negotiation::fail(const Error& error) {
  for (const auto& request : take_back()) request->fail(error);
}

bool Negotiation::between_cycles() const { return cycles_->resting(); }

std::vector<std::shared_ptr<Request>> Negotiation::take_back() { return cycles_->take_back(); }

std::vector<std::string> Negotiation::take_without() { return cycles_->take_without(); }

std::string Negotiation::explain() const { return cycles_->explain(); }

}  // namespace forebay
