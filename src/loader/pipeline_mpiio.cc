// Engine mpiio in a Pipeline: MPI opens the file beside ours.
#include "forebay/error.hpp"
#include "loader/pipeline.hpp"
#include "storage/url.hpp"

namespace forebay {
namespace {

// What a root says should reach the others before their consumers wait for it.
constexpr std::chrono::microseconds kStepsRest{2000};

}  // namespace

void Pipeline::require_threads_for_mpiio() const {
  if (setup_.engine != ReadEngine::mpiio || comm_->concurrent()) return;
  throw Error(ErrorKind::unsupported,
              "engine mpiio calls MPI in helper threads, and MPI grants less than "
              "MPI_THREAD_MULTIPLE",
              "initialise MPI with MPI_Init_thread(MPI_THREAD_MULTIPLE), or use another --engine");
}

/// Collective. The independent reader takes the place of ours; the scan at open uses it as well.
void Pipeline::open_mpiio() {
  if (setup_.engine != ReadEngine::mpiio) return;
  collectively(*comm_, [&] {
    if (!is_foreign(path_)) return;
    throw Error(ErrorKind::unsupported, "MPI-IO opens files of the operating system only",
                "use '--engine pread'", {.file = path_});
  });
  collectively(*comm_, [&] {
    if (root_ < 0) return;
    const auto alone = roots_->split(roots_->rank(), 0);
    const auto file = data_->only_file();
    if (!file) {
      throw Error(ErrorKind::unsupported, "engine mpiio reads data sets of a single file",
                  "use '--engine pread'", {.file = path_});
    }
    auto own = make_independent_reader(*alone, file,
                                       {.depth = options_.depth,
                                        .request_bytes = options_.request_bytes,
                                        .timeout = options_.timeout,
                                        .stop = end_signal_->token()});
    if (!setup_.collective) return data_->read_with(std::move(own), nullptr);
    steps_ = std::make_shared<CommonSteps>(roots_->split(0, roots_->rank()));
    if (progress_)
      steps_served_ = progress_->add([steps = steps_] { return steps->serve(); }, kStepsRest);
    data_->read_with(std::move(own),
                     std::make_unique<CollectiveReader>(file, roots_->open_together(file->path()),
                                                        steps_, give_up()));
  });
}

}  // namespace forebay
