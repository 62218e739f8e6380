#include "sync/make_agreement.hpp"

#include "sync/negotiation.hpp"
#include "sync/topo.hpp"

namespace forebay {

std::unique_ptr<Agreement> make_agreement(const AgreementContext& context) {
  if (context.options.strategy == SyncStrategy::topo) return std::make_unique<Topo>(context);
  return std::make_unique<Negotiation>(context);
}

}  // namespace forebay
