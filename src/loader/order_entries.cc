// The options that choose and shape an order.
#include <array>
#include <charconv>

#include "core/number_text.hpp"
#include "forebay/error.hpp"
#include "loader/option_table.hpp"
#include "order/order_names.hpp"

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

// What these allow depends on the data set too: OrderOptions::validate() has the last word.
const std::array kEntries = {
    OptionEntry{
        {"order", "NAME",
         "strided (default), listed; or, new in every epoch, grouped, shuffled, in_memory"},
        [](LoaderOptions& o, std::string_view t) { o.order = parse_name("order", t, kOrders); },
        [](const LoaderOptions& o) { return std::string(to_string(o.order)); }},
    OptionEntry{{"seed", "N", "of the order: the same seed gives the same one (default 0)"},
                [](LoaderOptions& o, std::string_view t) { o.seed = parse_count(t, "seed"); },
                [](const LoaderOptions& o) { return std::to_string(o.seed); }},
    OptionEntry{
        {"end", "NAME",
         "last batches of an epoch (strided: of --epochs): exact (default: short ones), drop, pad "
         "(by the rank's own samples), wrap (by the epoch's first)"},
        [](LoaderOptions& o, std::string_view t) { o.end = parse_name("end", t, kOrderEnds); },
        [](const LoaderOptions& o) { return o.end ? std::string(to_string(*o.end)) : ""; }},
    OptionEntry{{"group", "G", "samples that are read together, for grouped and in_memory"},
                [](LoaderOptions& o, std::string_view t) { o.group = parse_count(t, "group", 1); },
                [](const LoaderOptions& o) { return std::to_string(o.group); }},
    OptionEntry{
        {"keep", "K", "neighbours that shuffled keeps together (default 1; 0: all, no shuffling)"},
        [](LoaderOptions& o, std::string_view t) { o.keep = parse_count(t, "keep"); },
        [](const LoaderOptions& o) { return std::to_string(o.keep); }},
    OptionEntry{{"memory-ratio", "R", "part of the data set that in_memory holds (default 1)"},
                [](LoaderOptions& o, std::string_view t) { o.ratio = parse_ratio(t); },
                [](const LoaderOptions& o) { return fmt::format("{}", o.ratio); }},
    OptionEntry{{"list", "FILE", "the sample ids of listed, as numbers between white space"},
                [](LoaderOptions& o, std::string_view t) { o.list = t; },
                [](const LoaderOptions& o) { return o.list; }},
    OptionEntry{{"reuse", "K", "how often samples in memory are delivered (default 1)"},
                [](LoaderOptions& o, std::string_view t) { o.reuse = parse_count(t, "reuse", 1); },
                [](const LoaderOptions& o) { return std::to_string(o.reuse); }},
    OptionEntry{{"reuse-scope", "NAME",
                 "ranks among which they are recombined: process (default), node, global"},
                [](LoaderOptions& o, std::string_view t) {
                  o.reuse_scope = parse_name("reuse-scope", t, kReuseScopes);
                },
                [](const LoaderOptions& o) { return std::string(to_string(o.reuse_scope)); }},
    OptionEntry{
        {"window", "W", "iterations that are read together, for shuffled and listed (default 8)"},
        [](LoaderOptions& o, std::string_view t) { o.window = parse_count(t, "window", 1); },
        [](const LoaderOptions& o) { return std::to_string(o.window); }},
    OptionEntry{
        {"hold", "NAME",
         "where samples are drawn from: storage (default), or memory: of all ranks "
         "together, which read the data set once"},
        [](LoaderOptions& o, std::string_view t) { o.hold = parse_name("hold", t, kHolds); },
        [](const LoaderOptions& o) { return std::string(to_string(o.hold)); }},
};

}  // namespace

std::span<const OptionEntry> order_entries() { return kEntries; }

std::span<const OptionInfo> order_option_infos() {
  static const auto infos = infos_of(kEntries);
  return infos;
}

std::string_view to_string(Hold hold) { return name_of(hold, kHolds); }

}  // namespace forebay
