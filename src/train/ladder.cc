#include "train/ladder.hpp"

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

}  // namespace forebay
