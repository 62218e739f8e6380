// Parts of a run whose processes are not connected: LoaderOptions::shard.
#pragma once

#include <string>
#include <string_view>

#include "forebay/options.hpp"

namespace forebay {

/// Reads "k/n": part k, from 0, of n. Throws usage.
Shard parse_shard(std::string_view text);
std::string to_string(const Shard& shard);

/// Throws usage when `ranks` ranks cannot be a shard, or the order takes samples from others.
void require_fitting_shard(const LoaderOptions& options, int ranks);

}  // namespace forebay
