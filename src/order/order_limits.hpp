// Limits of orders, and how breaking them is told. Together they keep every product below 2^64.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/names.hpp"
#include "forebay/epoch_order.hpp"

namespace forebay {

inline constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 48;
inline constexpr std::uint64_t kLargestBatch = std::uint64_t{1} << 32;
inline constexpr int kMostRanks = 1 << 20;
inline constexpr std::uint64_t kMostDeliveries = std::uint64_t{1} << 56;
inline constexpr std::uint64_t kMostReuse = 1 << 20;
inline constexpr std::uint64_t kMostWindow = 1 << 20;
inline constexpr std::uint64_t kMostSegments = 4096;
inline constexpr std::uint64_t kMostRanksOfSegments = 1 << 24;  ///< of all segments together

/// Throws usage unless `holds`.
void require_usage(bool holds, const std::string& happened, const std::string& remedy);
void require_sharing(int ranks, std::uint64_t batch);
/// Of a group, where no bounds are given.
void require_group(const OrderOptions& options);
/// "3:00000000000000ff": how many there are, and a hash, for identities.
std::string text_of_numbers(const SharedNumbers& numbers);
/// Of what a saved state says; messages speak of it.
void require_sharing_limits(const std::vector<Segment>& done);

// What ends and scopes of orders are called, in code, options and saved states.

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
