#include "cli/order/order_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "order/order_table.hpp"
#include "program/output.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

// Longer epochs take seconds to draw.
constexpr std::uint64_t kMostMeasuredUnasked = std::uint64_t{1} << 22;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// Two decimals, as the papers have it.
std::optional<double> percent(const std::optional<double>& part) {
  if (!part) return std::nullopt;
  return std::round(*part * 10'000) / 100;
}

/// Bytes of so many samples, where the size of samples is known.
std::optional<std::uint64_t> bytes_of(const OrderReport& report, std::uint64_t samples) {
  if (!report.sample_bytes) return std::nullopt;
  return static_cast<std::uint64_t>(
      std::llround(static_cast<double>(samples) * *report.sample_bytes));
}

/// The part of what as many deliveries read without reuse.
double movement_saved(const OrderReport& report) {
  return 1 - 1 / static_cast<double>(report.order.options().reuse);
}

std::vector<std::uint64_t> samples_of(const EpochOrder& order, int rank, std::uint64_t iteration) {
  std::vector<std::uint64_t> samples;
  const Share share = order.share(rank, iteration);
  for (std::uint64_t i = 0; i < share.count; ++i) {
    samples.push_back(order.draw(rank, share.first + i).sample);
  }
  return samples;
}

Json list_of(const EpochOrder& order) {
  Json iterations = Json::array();
  for (std::uint64_t iteration = 0; iteration < order.steps(); ++iteration) {
    Json ranks = Json::array();
    for (int rank = 0; rank < order.options().ranks; ++rank) {
      ranks.push_back(samples_of(order, rank, iteration));
    }
    iterations.push_back(std::move(ranks));
  }
  return iterations;
}

Json measured_json(const std::optional<MeasuredOrder>& measured) {
  if (!measured) return nullptr;
  return {{"neighbours_kept", measured->neighbours_kept},
          {"correlation", measured->correlation},
          {"neighbour_distance", measured->neighbour_distance}};
}

Json reuse_json(const OrderReport& report) {
  Json json{{"times", report.order.options().reuse},
            {"scope", to_string(report.order.options().reuse_scope)},
            {"movement_saved", movement_saved(report)}};
  if (report.measured) {
    json["distance"] = report.measured->reuse_distance;
    json["least_distance"] = report.measured->least_reuse_distance;
  }
  return json;
}

Json reading_json(const OrderReport& report) {
  const OrderCost& cost = report.cost;
  const auto bytes = bytes_of(report, cost.samples_read);
  Json json{{"requests", cost.requests},
            {"samples", cost.samples_read},
            {"bytes", or_null(bytes)},
            {"mean_request_bytes", nullptr},
            {"once_a_run", report.order.resident()}};
  if (bytes && cost.requests > 0) {
    json["mean_request_bytes"] = static_cast<double>(*bytes) / static_cast<double>(cost.requests);
  }
  return json;
}

void print_row(std::string_view name, std::string_view text) {
  fmt::print("  {:<16} {}\n", name, text);
}

/// "24.0 MB (7,600 samples)", or the samples alone.
std::string amount(const OrderReport& report, std::uint64_t samples) {
  const auto bytes = bytes_of(report, samples);
  const std::string count = human_count(samples) + (samples == 1 ? " sample" : " samples");
  return bytes ? fmt::format("{} ({})", human_bytes(*bytes), count) : count;
}

std::string parameters(const OrderOptions& options) {
  std::string text{to_string(options.order)};
  const OrderRow& row = order_row(options.order);
  if (row.kept && options.keep != 1) {
    text += fmt::format(", {} neighbours kept together",
                        options.keep == 0 ? "all" : human_count(options.keep));
  }
  if (row.exchanges) {
    text += fmt::format(", {} of the data set in memory", options.ratio);
  }
  if (!row.kept && options.group > 0) {
    text += fmt::format(", groups of {}", human_count(options.group));
  }
  if (options.reuse > 1) {
    text += fmt::format(", used {} times ({})", options.reuse, to_string(options.reuse_scope));
  }
  return text;
}

void print_randomness(const OrderReport& report) {
  print_row("randomization", report.level
                                 ? fmt::format("{:.2f} % of a full shuffle", *percent(report.level))
                                 : "the caller's own");
  if (report.measured) {
    print_row("as drawn",
              fmt::format("{:.2f} % of neighbours kept, {:.2f} times as far apart as in "
                          "a full shuffle, correlation {:+.4f}",
                          100 * report.measured->neighbours_kept,
                          report.measured->neighbour_distance, report.measured->correlation));
  }
  if (!report.epochs_limit) return;
  const auto limit = static_cast<std::uint64_t>(std::ceil(*report.epochs_limit));
  std::string text =
      fmt::format("fewer than {} epochs (samples / {} {})", human_count(limit),
                  human_count(*report.subsets), *report.subsets == 1 ? "part" : "parts");
  if (report.epochs > 0) {
    const bool holds = static_cast<double>(report.epochs) < *report.epochs_limit;
    text += fmt::format("; {} {}", human_count(report.epochs), holds ? "are" : "are too many");
  }
  print_row("converges in", text);
}

void print_reading(const OrderReport& report) {
  const OrderCost& cost = report.cost;
  std::string text = fmt::format("{} in {} requests", amount(report, cost.samples_read),
                                 human_count(cost.requests));
  if (const auto bytes = bytes_of(report, cost.samples_read); bytes && cost.requests > 0) {
    text += fmt::format(" of {}", human_bytes(*bytes / cost.requests));
  }
  print_row("reads", text + (report.order.resident() ? ", once a run" : " an epoch"));
  print_row("memory a rank", amount(report, cost.samples_held));
  print_row("between ranks", amount(report, cost.samples_exchanged) + " an epoch");
  print_row("between nodes", amount(report, cost.between_nodes) + " an epoch");
}

void print_reuse(const OrderReport& report) {
  if (report.order.options().reuse == 1) return;
  std::string text = fmt::format("{:.0f} % less to read", 100 * movement_saved(report));
  if (report.measured) {
    text += fmt::format(
        "; a sample comes back after {} others on average, at least {}",
        human_count(static_cast<std::uint64_t>(std::llround(report.measured->reuse_distance))),
        human_count(report.measured->least_reuse_distance));
  }
  print_row("reuse", text);
}

void print_list(const EpochOrder& order) {
  fmt::print("\n  iteration  rank  samples\n");
  for (std::uint64_t iteration = 0; iteration < order.steps(); ++iteration) {
    for (int rank = 0; rank < order.options().ranks; ++rank) {
      const auto samples = samples_of(order, rank, iteration);
      fmt::print("  {:>9}  {:>4}  {}\n", iteration, rank,
                 samples.empty() ? "-" : fmt::format("{}", fmt::join(samples, " ")));
    }
  }
}

}  // namespace

OrderReport::OrderReport(const EpochOrder& of)
    : order(of),
      level(randomization_level(of.options())),
      subsets(forebay::subsets(of.options())),
      epochs_limit(forebay::epochs_limit(of.options())),
      cost(cost_of(of)) {
  const std::uint64_t most = kMostMeasuredUnasked;
  if (of.size() <= most && of.options().entries <= most) measured = measure_order(of);
}

Json to_json(const OrderReport& report) {
  const EpochOrder& order = report.order;
  const OrderCost& cost = report.cost;
  Json rule{{"subsets", or_null(report.subsets)}, {"fewer_than", or_null(report.epochs_limit)}};
  if (report.epochs > 0 && report.epochs_limit) {
    rule["epochs"] = report.epochs;
    rule["holds"] = static_cast<double>(report.epochs) < *report.epochs_limit;
  }
  Json json{
      {"samples", order.options().entries},
      {"order", order.options().identity()},
      {"ranks", order.options().ranks},
      {"batch", order.options().batch},
      {"epoch", order.epoch()},
      {"randomization_level_percent", or_null(percent(report.level))},
      {"measured", measured_json(report.measured)},
      {"convergence", rule},
      {"iterations", order.steps()},
      {"deliveries", cost.deliveries},
      {"dropped", order.dropped()},
      {"repeated", order.repeated()},
      {"counted", cost.counted},
      {"sample_bytes", or_null(report.sample_bytes)},
      {"reads", reading_json(report)},
      {"memory_a_rank",
       {{"samples", cost.samples_held}, {"bytes", or_null(bytes_of(report, cost.samples_held))}}},
      {"between_ranks",
       {{"samples", cost.samples_exchanged},
        {"bytes", or_null(bytes_of(report, cost.samples_exchanged))}}},
      {"between_nodes",
       {{"samples", cost.between_nodes},
        {"bytes", or_null(bytes_of(report, cost.between_nodes))}}}};
  if (order.options().reuse > 1) json["reuse"] = reuse_json(report);
  if (report.list) json["list"] = list_of(order);
  return json;
}

void print_report(const OrderReport& report) {
  const OrderOptions& options = report.order.options();
  fmt::print("{} {}, {}; {} {}, batch {}\n", human_count(options.entries),
             options.entries == 1 ? "sample" : "samples", parameters(options), options.ranks,
             options.ranks == 1 ? "rank" : "ranks", human_count(options.batch));
  print_randomness(report);
  print_row("iterations",
            fmt::format("{} an epoch; the end ({}): {} dropped, {} repeated",
                        human_count(report.order.steps()), to_string(options.order_end()),
                        human_count(report.order.dropped()), human_count(report.order.repeated())));
  print_reading(report);
  print_reuse(report);
  if (report.list) print_list(report.order);
}

}  // namespace forebay
