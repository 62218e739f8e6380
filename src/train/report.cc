#include "train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sync/gradient_sum.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

Json to_json_object(const Breakdown& rank) {
  Json json;
  for (std::size_t i = 0; i < kPhases; ++i) {
    std::string name(to_string(static_cast<Phase>(i)));
    std::ranges::replace(name, ' ', '_');
    json[name + "_seconds"] = rank.seconds[i];
  }
  json["total_seconds"] = rank.total;
  json["images"] = rank.images;
  return json;
}

Json to_json_object(const GradientStatistics& rank) {
  Json json{{"bytes", rank.bytes}, {"early_bytes", rank.early_bytes}};
  const auto add = [&json](const char* name, const auto& figure) {
    if (!json.contains(name)) json[name] = figure;
  };
  for_each_figure(add, rank.engine);
  return json;
}

Json to_json_object(const ParameterServerStatistics& rank) {
  return {
      {"pushes", rank.pushes},      {"waits", rank.waits},     {"wait_seconds", rank.wait_seconds},
      {"requests", rank.requests},  {"updates", rank.updates}, {"near_bytes", rank.near_bytes},
      {"far_bytes", rank.far_bytes}};
}

Json sync_to_json(const TrainReport& report) {
  Json json{{"strategy", to_string(report.sync_strategy)},
            {"explanation", report.sync_explanation},
            {"overlap", overlap(report.sync)},
            {"ranks", Json::array()}};
  for (const GradientStatistics& rank : report.sync) {
    json["ranks"].push_back(to_json_object(rank));
    if (report.sync_strategy.has_servers) {
      json["ranks"].back()["servers"] = to_json_object(rank.servers);
    }
  }
  return json;
}

/// The second half of what the table says about gradients; means of the ranks.
std::string sync_to_text(const TrainReport& report) {
  if (report.sync.empty()) return "";
  if (report.sync_strategy.has_servers) {
    return fmt::format("gradients: {}\n", report.sync_explanation);
  }
  if (!report.sync_strategy.agree) return "";
  const auto ranks = static_cast<double>(report.sync.size());
  double moving = 0;
  double thread = 0;
  for (const GradientStatistics& rank : report.sync) {
    moving += (rank.engine.transfer_seconds + rank.engine.copy_seconds) / ranks;
    thread += (rank.engine.thread_user_seconds + rank.engine.thread_system_seconds) / ranks;
  }
  double waited = 0;
  for (const Breakdown& rank : report.ranks) waited += rank[Phase::sync] / ranks;
  return fmt::format(
      "gradients: {}\n"
      "overlap: {:.0f} % of their bytes were summed when the backward pass ended; {:.2f} s of "
      "copies and transfers, {:.2f} s waited for; progress thread {:.2f} s\n",
      report.sync_explanation, 100 * overlap(report.sync), moving, waited, thread);
}

}  // namespace

std::string to_line(const EpochRecord& record, std::uint64_t epochs) {
  std::string line = fmt::format("epoch {}", record.epoch);
  if (epochs > 0) line += fmt::format("/{}", epochs);
  line += fmt::format(": iteration {}, loss {:.4f}", record.iteration, record.loss);
  if (!record.test) return line;
  if (record.test->accuracy) line += fmt::format(", test accuracy {:.4f}", *record.test->accuracy);
  return line + fmt::format(", test loss {:.4f}", record.test->loss);
}

std::string to_text(const TrainReport& report) {
  std::string text = fmt::format("{}\n{}", report.explanation, to_table(report.ranks));
  text += sync_to_text(report);
  if (!report.test) return text;
  const auto& [accuracy, loss, samples] = *report.test;
  return text + fmt::format("test {} {:.4f} on {} samples after {} epochs\n",
                            accuracy ? "accuracy" : "loss", accuracy.value_or(loss), samples,
                            report.epochs);
}

std::string to_json(const TrainReport& report) {
  Json json{{"event", "summary"},
            {"iterations", report.iterations},
            {"epochs", report.epochs},
            {"loss", report.loss}};
  if (report.test) {
    if (report.test->accuracy) json["test_accuracy"] = *report.test->accuracy;
    json["test_loss"] = report.test->loss;
    json["test_samples"] = report.test->samples;
  }
  json["images_per_second"] = images_per_second(report.ranks);
  json["reading"] = report.explanation;
  json["ranks"] = Json::array();
  for (const Breakdown& rank : report.ranks) json["ranks"].push_back(to_json_object(rank));
  json["sync"] = sync_to_json(report);
  json["loader"] = Json::parse(to_json(report.loader));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace forebay
