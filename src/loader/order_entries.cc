// The options that choose and shape an order.
#include <charconv>

#include "forebay/error.hpp"
#include "loader/option_table.hpp"
#include "order/order_limits.hpp"
#include "order/order_table.hpp"

namespace forebay {
namespace {

constexpr Name<Hold> kHolds[] = {{"storage", Hold::storage}, {"memory", Hold::memory}};

double parse_ratio(std::string_view text) {
  double ratio = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ratio);
  if (error == std::errc() && end == text.data() + text.size() && ratio > 0 && ratio <= 1) {
    return ratio;
  }
  throw Error(ErrorKind::usage, fmt::format("'{}' is no value of option memory-ratio", text),
              "give a number above 0 and at most 1");
}

using O = LoaderOptions;

// What these allow depends on the data set too: OrderOptions::validate() has the last word.
const std::vector<OptionEntry> kEntries = {
    {{"order", "NAME",
      "strided (default), listed; or, new in every epoch, grouped, shuffled, in_memory"},
     [](O& o, std::string_view t) { o.order = parse_order("order", t); },
     [](const O& o) { return std::string(to_string(o.order)); }},
    entry({"seed", "N", "of the order: the same seed gives the same one (default 0)"}, &O::seed),
    {{"end", "NAME",
      "last batches of an epoch (strided: of --epochs): exact (default: short ones), drop, pad "
      "(by the rank's own samples), wrap (by the epoch's first)"},
     [](O& o, std::string_view t) { o.end = parse_name("end", t, kOrderEnds); },
     [](const O& o) { return o.end ? std::string(to_string(*o.end)) : ""; }},
    entry({"group", "G", "samples that are read together, for grouped and in_memory"}, &O::group,
          1),
    entry(
        {"keep", "K", "neighbours that shuffled keeps together (default 1; 0: all, no shuffling)"},
        &O::keep),
    {{"memory-ratio", "R", "part of the data set that in_memory holds (default 1)"},
     [](O& o, std::string_view t) { o.ratio = parse_ratio(t); },
     [](const O& o) { return fmt::format("{}", o.ratio); }},
    entry({"list", "FILE", "the sample ids of listed, as numbers between white space"}, &O::list),
    entry({"reuse", "K", "how often samples in memory are delivered (default 1)"}, &O::reuse, 1),
    entry({"reuse-scope", "NAME",
           "ranks among which they are recombined: process (default), node, global"},
          &O::reuse_scope, kReuseScopes),
    entry({"window", "W", "iterations that are read together, for shuffled and listed (default 8)"},
          &O::window, 1),
    entry({"hold", "NAME",
           "where samples are drawn from: storage (default), or memory: of all ranks "
           "together, which read the data set once"},
          &O::hold, kHolds),
};

}  // namespace

std::span<const OptionEntry> order_entries() { return kEntries; }

std::span<const OptionInfo> order_option_infos() {
  static const auto infos = infos_of(kEntries);
  return infos;
}

std::string_view to_string(Hold hold) { return name_of(hold, kHolds); }

}  // namespace forebay
