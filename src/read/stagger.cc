#include "read/stagger.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/log.hpp"
#include "forebay/error.hpp"
#include "read/ticket_stagger.hpp"
#include "read/token_stagger.hpp"
#include "read/tuned_stagger.hpp"

namespace forebay {
namespace {

class NoStagger final : public Stagger {
 public:
  explicit NoStagger(int roots) : roots_(roots) {}
  bool acquire(std::uint64_t, const GiveUp&) override { return true; }
  void release(std::uint64_t) override {}
  void leave() override {}
  bool unlimited() const override { return true; }
  std::string describe() const override {
    return roots_ == 1 ? "one root reads" : fmt::format("all {} roots read at once", roots_);
  }

 private:
  int roots_;
};

}  // namespace

std::unique_ptr<Stagger> make_stagger(Communicator& roots, const StaggerOptions& options,
                                      ProgressThread* progress) {
  if (options.group < 0) {
    throw Error(ErrorKind::usage, fmt::format("{} roots cannot read at once", options.group),
                "give --stagger at least 1");
  }
  if (options.by == StaggerBy::none || roots.size() == 1 || options.group >= roots.size()) {
    return std::make_unique<NoStagger>(roots.size());
  }
  if (!roots.concurrent()) {
    throw Error(ErrorKind::unsupported, "roots cannot take turns to read without threads in MPI",
                "leave out --stagger, or use an MPI library with MPI_THREAD_MULTIPLE");
  }
  if (options.group == StaggerOptions::kAuto) {
    return std::make_unique<TunedStagger>(roots, options, progress);
  }
  if (options.by == StaggerBy::ticket) {
    return std::make_unique<TicketStagger>(roots, options, progress);
  }
  return std::make_unique<TokenStagger>(roots.split(0, roots.rank()), options);
}

StaggerTurn::~StaggerTurn() {
  try {
    end();
  } catch (const Error& error) {
    log(LogLevel::warning, "other roots may wait for their turn to read: {}", error.what());
  }
}

void StaggerTurn::end() {
  Stagger* const stagger = std::exchange(stagger_, nullptr);
  if (stagger != nullptr) stagger->release(bytes_);
}

}  // namespace forebay
