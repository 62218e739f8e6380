#include "train/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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
  json["loader"] = Json::parse(to_json(report.loader));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace forebay
