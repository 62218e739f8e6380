// What orders, their ends and scopes are called, in code, options and saved states.
#pragma once

#include "core/names.hpp"
#include "forebay/epoch_order.hpp"

namespace forebay {

inline constexpr Name<OrderName> kOrders[] = {
    {"strided", OrderName::strided},     {"grouped", OrderName::grouped},
    {"shuffled", OrderName::shuffled},   {"in_memory", OrderName::in_memory},
    {"in-memory", OrderName::in_memory}, {"listed", OrderName::listed},
};
/// Those that are new in every epoch.
inline constexpr Name<OrderName> kEpochOrders[] = {
    {"grouped", OrderName::grouped},
    {"shuffled", OrderName::shuffled},
    {"in_memory", OrderName::in_memory},
    {"listed", OrderName::listed},
};
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
