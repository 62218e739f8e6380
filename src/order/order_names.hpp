// What ends and scopes of orders are called, in code, options and saved states.
#pragma once

#include "core/names.hpp"
#include "forebay/epoch_order.hpp"

namespace forebay {

inline constexpr Name<OrderEnd> kOrderEnds[] = {
    {"drop", OrderEnd::drop},
    {"pad", OrderEnd::pad},
    {"wrap", OrderEnd::wrap},
    {"exact", OrderEnd::exact},
};
inline constexpr Name<ReuseScope> kReuseScopes[] = {
    {"process", ReuseScope::process},
    {"node", ReuseScope::node},
    {"global", ReuseScope::global},
};

}  // namespace forebay
