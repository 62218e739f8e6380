// Which class stands for which strategy.
#pragma once

#include <memory>

#include "sync/agreement.hpp"

namespace forebay {

/// As the strategy in `context.options` says. Collective.
std::unique_ptr<Agreement> make_agreement(const AgreementContext& context);

}  // namespace forebay
