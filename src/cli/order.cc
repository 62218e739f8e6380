// forebay order: how random an order is, and what it costs, before anything is read.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/dataset_options.hpp"
#include "cli/order/order_report.hpp"
#include "core/number_text.hpp"
#include "forebay/epoch_order.hpp"
#include "forebay/error.hpp"
#include "format/lmdb/inspect.hpp"
#include "format/lmdb/lmdb_set.hpp"
#include "format/registry.hpp"
#include "loader/list_file.hpp"
#include "order/order_limits.hpp"
#include "order/order_table.hpp"
#include "program/flags.hpp"
#include "program/output.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kBatchOfARank = 32;
constexpr std::uint64_t kPrintedUnasked = 64;
constexpr std::uint64_t kMostPrinted = std::uint64_t{1} << 24;

struct OrderFlags {
  OrderOptions order;
  std::string dataset;
  std::string list_file;
  std::string sample_bytes;
  CLI::Option* kind = nullptr;
  CLI::Option* ratio = nullptr;
  std::uint64_t epoch = 0;
  std::uint64_t epochs = 0;
  bool print = false;
  bool json = false;
};

/// Number and mean size of the samples of a data set.
struct DatasetSize {
  std::uint64_t entries = 0;
  double bytes = 0;
};

DatasetSize size_of_dataset(const std::string& name) {
  FormatOptions how;
  how.engine = usable_engine(name, Engine::mmap);
  how.hold = false;
  const auto data = open_data_set(name, how);
  const auto* tree = dynamic_cast<const lmdb::LmdbSet*>(data.get());
  if (tree == nullptr) {
    return {data->facts().entries, static_cast<double>(data->facts().sample_bytes)};
  }
  const lmdb::DatabaseReport report = lmdb::inspect(tree->database());
  data->check_unchanged();
  return {report.entries, report.values.mean()};
}

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
    const DatasetSize size = size_of_dataset(flags.dataset);
    options.entries = size.entries;
    bytes = size.bytes;
  }
  if (!flags.sample_bytes.empty()) {
    bytes = static_cast<double>(parse_bytes(flags.sample_bytes, "--sample-bytes"));
  }
  options.order = kind_of(flags);
  if (!flags.list_file.empty()) {
    options.ids =
        std::make_shared<const std::vector<std::uint64_t>>(read_list_file(flags.list_file));
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
  sub->callback([flags] { show_order(*flags); });
}

}  // namespace forebay
