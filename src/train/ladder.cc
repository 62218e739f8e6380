#include "train/ladder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "measure/machine.hpp"

namespace forebay {

LadderResults run_ladder(const std::shared_ptr<Communicator>& comm, const LadderOptions& options,
                         const NetworkFactory& factory,
                         const std::function<void(std::size_t)>& done) {
  const bench::Layout layout = bench::find_layout(*comm);
  LadderResults results{.options = options, .ranks = comm->size(), .nodes = layout.nodes};
  std::vector<std::string> files;
  collectively(*comm, [&] { files = bench::files_of(options.train.dataset); });
  bench::PageCache cache(*comm, layout, files, options.cold);
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    for (const bench::Variant& variant :
         bench::in_turn(options.variants, options.seed, repetition)) {
      TrainOptions train = options.train;
      train.loader = variant.options;
      train.measure_skew = true;
      cache.prepare();
      Trainer trainer(comm, train, factory);
      results.runs.push_back({variant.name, repetition, trainer.run()});
      if (done && comm->rank() == 0) done(results.runs.size());
    }
  }
  return results;
}

using Json = nlohmann::ordered_json;

namespace {

/// The papers' parts of an iteration.
struct Parts {
  double read = 0;
  double skew = 0;
  double compute = 0;
  double sync = 0;
  double other = 0;
};

/// Mean of the ranks.
Parts parts_of(const TrainReport& report) {
  Parts sum;
  for (const Breakdown& rank : report.ranks) {
    sum.read += rank[Phase::read];
    sum.skew += rank[Phase::skew];
    sum.compute +=
        rank[Phase::decode] + rank[Phase::forward] + rank[Phase::backward] + rank[Phase::update];
    sum.sync += rank[Phase::sync];
    sum.other += rank[Phase::other] + rank[Phase::test];
  }
  const auto ranks = static_cast<double>(std::max<std::size_t>(1, report.ranks.size()));
  for (double* part : {&sum.read, &sum.skew, &sum.compute, &sum.sync, &sum.other}) *part /= ranks;
  return sum;
}

Json row_of(const LadderResults& results, const std::string& variant) {
  std::vector<Json> figures;
  for (const LadderRun& run : results.runs) {
    if (run.variant != variant) continue;
    const Parts parts = parts_of(run.report);
    figures.push_back({{"compute_seconds", parts.compute},
                       {"images_per_second", images_per_second(run.report.ranks)},
                       {"other_seconds", parts.other},
                       {"read_seconds", parts.read},
                       {"skew_seconds", parts.skew},
                       {"sync_seconds", parts.sync}});
  }
  Json row{{"strategy", variant}};
  row.update(bench::spreads_of(figures));
  return row;
}

Json summary_of(const LadderResults& results) {
  Json rows = Json::array();
  for (const bench::Variant& variant : results.options.variants) {
    rows.push_back(row_of(results, variant.name));
  }
  return rows;
}

}  // namespace

Json to_json(const LadderResults& results) {
  const TrainOptions& train = results.options.train;
  Json json{{"bench", "train"},
            {"ranks", results.ranks},
            {"nodes", results.nodes},
            {"net", train.net},
            {"threads", results.options.threads},
            {"data_set", {{"path", train.dataset}}},
            {"options",
             {{"loader", train.loader.to_text()},
              {"repetitions", results.options.repetitions},
              {"seed", results.options.seed},
              {"cache", results.options.cold ? "cold" : "warm"}}},
            {"summary", summary_of(results)},
            {"runs", Json::array()}};
  for (const LadderRun& run : results.runs) {
    Json entry{{"strategy", run.variant}, {"repetition", run.repetition}};
    entry.update(Json::parse(to_json(run.report)));
    json["runs"].push_back(std::move(entry));
  }
  return json;
}

std::string to_text(const LadderResults& results) {
  std::string text = fmt::format("{:<24}{:>26}{:>9}{:>9}{:>9}{:>9}{:>9}\n", "strategy", "images/s",
                                 "read", "skew", "compute", "sync", "other");
  for (const Json& row : summary_of(results)) {
    text += fmt::format("{:<24}{:>26}", row["strategy"].get<std::string>(),
                        bench::spread_to_text(row, "images_per_second", 0));
    for (const char* name :
         {"read_seconds", "skew_seconds", "compute_seconds", "sync_seconds", "other_seconds"}) {
      text += fmt::format("{:>9.2f}", bench::median_of(row, name));
    }
    text += '\n';
  }
  return text + "medians (least-most) of the repetitions; seconds: means of the ranks\n";
}

}  // namespace forebay
