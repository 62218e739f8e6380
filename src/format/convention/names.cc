#include "core/names.hpp"

#include "forebay/dataset.hpp"

namespace forebay {
namespace {

constexpr Name<ConventionName> kConventions[] = {
    {"auto", ConventionName::automatic},
    {"plain", ConventionName::plain},
    {"grouped", ConventionName::grouped},
    {"meta-info", ConventionName::meta_info},
};
constexpr Name<KeyOrder> kKeyOrders[] = {{"key", KeyOrder::key}, {"number", KeyOrder::number}};

}  // namespace

std::string_view to_string(ConventionName name) { return name_of(name, kConventions); }
std::string_view to_string(KeyOrder order) { return name_of(order, kKeyOrders); }

}  // namespace forebay
