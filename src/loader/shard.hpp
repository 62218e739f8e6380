// Parts of a run whose processes are not connected: LoaderOptions::shard.
#pragma once

#include <string>
#include <string_view>

#include "forebay/options.hpp"

namespace forebay {

/// Reads "k/n": part k, from 0, of n. Throws usage.
Shard parse_shard(std::string_view text);
std::string to_string(const Shard& shard);

/// Which option makes several ranks take samples out of each other's memory; empty: none does.
std::string_view what_exchanges(const LoaderOptions& options);

/// Whether all ranks together hold the whole data set, read once, as long as the run goes on.
bool holds_all(const LoaderOptions& options);

/// Throws usage when `ranks` ranks cannot be a shard, or the order takes samples from others.
void require_fitting_shard(const LoaderOptions& options, int ranks);

}  // namespace forebay
