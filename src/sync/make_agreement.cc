#include "sync/make_agreement.hpp"

#include "sync/negotiation.hpp"

namespace forebay {

std::unique_ptr<Agreement> make_agreement(const AgreementContext& context) {
  return std::make_unique<Negotiation>(context);
}

}  // namespace forebay
