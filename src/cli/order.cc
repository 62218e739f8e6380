// forebay order: how random an order is, and what it costs, before anything is read.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/dataset_options.hpp"
#include "core/number_text.hpp"
#include "forebay/epoch_order.hpp"
#include "forebay/error.hpp"
#include "forebay/randomization.hpp"
#include "format/registry.hpp"
#include "loader/list_file.hpp"
#include "order/order_cost.hpp"
#include "order/order_limits.hpp"
#include "order/order_table.hpp"
#include "program/flags.hpp"
#include "program/output.hpp"
#include "program/run.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

// Longer epochs take seconds to draw.
constexpr std::uint64_t kMostMeasuredUnasked = std::uint64_t{1} << 22;

/// What is said of an order: figures of one epoch, and the order itself.
struct OrderReport {
  explicit OrderReport(const EpochOrder& order);

  EpochOrder order;
  std::optional<double> level;  ///< RL
  std::optional<std::uint64_t> subsets;
  std::optional<double> epochs_limit;
  std::optional<MeasuredOrder> measured;  ///< where the epoch is short enough
  OrderCost cost;
  std::optional<double> sample_bytes;  ///< mean, where known
  std::uint64_t epochs = 0;            ///< that training will take; 0 = not said
  bool list = false;
};

OrderReport::OrderReport(const EpochOrder& of)
    : order(of),
      level(randomization_level(of.options())),
      subsets(forebay::subsets(of.options())),
      epochs_limit(forebay::epochs_limit(of.options())),
      cost(cost_of(of)) {
  const std::uint64_t most = kMostMeasuredUnasked;
  if (of.size() <= most && of.options().entries <= most) measured = measure_order(of);
}

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

constexpr std::uint64_t kBatchOfARank = 32;
constexpr std::uint64_t kPrintedUnasked = 64;
constexpr std::uint64_t kMostPrinted = std::uint64_t{1} << 24;

struct OrderFlags {
  OrderOptions order;
  std::string dataset;
  std::string list_file;
  std::string sample_bytes;
  std::chrono::milliseconds timeout = LoaderOptions().timeout;
  CLI::Option* kind = nullptr;
  CLI::Option* ratio = nullptr;
  std::uint64_t epoch = 0;
  std::uint64_t epochs = 0;
  bool print = false;
  bool json = false;
};

/// A parameter that only one kind of order has names that order.
OrderName kind_of(const OrderFlags& flags) {
  if (flags.kind->count() > 0) return flags.order.order;
  if (!flags.list_file.empty()) return OrderName::listed;
  if (flags.ratio->count() > 0) return OrderName::in_memory;
  return flags.order.group > 0 ? OrderName::grouped : OrderName::shuffled;
}

void show_order(OrderFlags flags) {
  OrderOptions& options = flags.order;
  std::optional<double> bytes;
  if (flags.dataset.empty() == (options.entries == 0)) {
    throw Error(ErrorKind::usage, "an order needs a data set or a number of samples, not both",
                "name DATASET, or give --samples");
  }
  if (!flags.dataset.empty()) {
    FormatOptions how;
    how.engine = Engine::mmap;
    how.hold = false;
    const auto data = open_mapped(flags.dataset, how);
    options.entries = data->facts().entries;
    bytes = data->mean_value_bytes();
  }
  if (!flags.sample_bytes.empty()) {
    bytes = static_cast<double>(parse_bytes(flags.sample_bytes, "--sample-bytes"));
  }
  options.order = kind_of(flags);
  if (!flags.list_file.empty()) {
    options.ids = std::make_shared<const std::vector<std::uint64_t>>(
        read_list_file(flags.list_file, flags.timeout));
  }
  if (options.batch == 0) {
    const auto ranks = static_cast<std::uint64_t>(std::max(options.ranks, 1));
    options.batch = std::max(ranks, std::min(kBatchOfARank * ranks, options.entries));
  }
  OrderReport report(EpochOrder(options, flags.epoch));
  report.sample_bytes = bytes;
  report.epochs = flags.epochs;
  report.list = flags.print || report.order.size() <= kPrintedUnasked;
  if (report.list && report.order.size() > kMostPrinted) {
    throw Error(ErrorKind::usage, "the order is too long to print",
                fmt::format("leave --print out: the limit is {} samples", kMostPrinted));
  }
  if (flags.json) return print_json(to_json(report));
  print_report(report);
}

/// (CLI11 cannot hold an enum that has a to_string().)
template <typename Value, typename Enum, std::size_t N>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Value& value,
                        const Name<Enum> (&names)[N], const std::string& help) {
  std::vector<std::string> known;
  for (const auto& one : names) known.emplace_back(one.text);
  std::ranges::sort(known);
  return app
      .add_option_function<std::string>(
          name,
          [&value, &names, name](const std::string& text) {
            value = parse_name(name, text, names);
          },
          help)
      ->type_name("NAME")
      ->check(CLI::IsMember(known));
}

void add_order_options(CLI::App& app, OrderFlags& flags) {
  OrderOptions& order = flags.order;
  std::vector<std::string> orders = epoch_order_names();
  std::ranges::sort(orders);
  flags.kind =
      app.add_option_function<std::string>(
             "--order",
             [&order](const std::string& name) { order.order = parse_order("--order", name); },
             "Kind of order; without it, the one that the options below belong to")
          ->type_name("NAME")
          ->check(CLI::IsMember(orders));
  app.add_option("--group", order.group, "Samples read together (grouped, in_memory)");
  flags.ratio = app.add_option("--ratio,--memory-ratio", order.ratio,
                               "Part of the data set in memory at once (in_memory), up to 1");
  app.add_option("--keep", order.keep, "Neighbours kept together (shuffled); 0: all");
  app.add_option("--list", flags.list_file, "File of sample ids between white space (listed)")
      ->type_name("FILE");
  add_former_name(app, "--ids", "--list FILE");
  app.add_option("--ranks", order.ranks, "Ranks")->capture_default_str();
  app.add_option("--ranks-per-node", order.ranks_per_node, "Ranks a node; 0 = all on one")
      ->capture_default_str();
  app.add_option("--batch", order.batch, "Samples of a global batch (default: 32 a rank)");
  app.add_option("--seed", order.seed, "Seed of the run")->capture_default_str();
  add_choice(app, "--end", order.end, kOrderEnds, "Tail of an epoch")->default_str("exact");
  app.add_option("--reuse", order.reuse, "How often samples are used before they are replaced")
      ->capture_default_str();
  add_choice(app, "--reuse-scope", order.reuse_scope, kReuseScopes,
             "Among whom they are recombined")
      ->default_str("process");
  app.add_option("--window", order.window, "Iterations in memory at once (shuffled, listed)")
      ->capture_default_str();
}

}  // namespace

void add_order_command(CLI::App& app) {
  CLI::App* sub =
      app.add_subcommand("order", "Show how random an order of samples is and what it costs");
  auto flags = std::make_shared<OrderFlags>();
  sub->add_option("DATASET", flags->dataset, "Data set, as for samples");
  sub->add_option("--samples", flags->order.entries, "Number of samples, instead of a data set");
  sub->add_option("--sample-bytes", flags->sample_bytes, "Size of a sample, like 3KiB")
      ->type_name("SIZE");
  add_order_options(*sub, *flags);
  sub->add_option("--epoch", flags->epoch, "The epoch that is drawn")->capture_default_str();
  sub->add_option("--epochs", flags->epochs, "Epochs of training, held against the rule");
  sub->add_flag("--print", flags->print, "Print the order itself (always up to 64 samples)");
  sub->add_flag("--json", flags->json, "Print the result as JSON");
  add_timeout_flag(*sub, flags->timeout);
  sub->callback(
      [flags] { run_with_answers(flags->dataset, flags->timeout, [&] { show_order(*flags); }); });
}

}  // namespace forebay
