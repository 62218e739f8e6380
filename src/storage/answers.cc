#include "storage/answers.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <utility>

#include "core/read_watch.hpp"
#include "storage/bulk_reader.hpp"
#include "storage/fault_guard.hpp"
#include "storage/file_error.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;

/// What is waited for is looked at so often; a limit is kept about as well.
constexpr milliseconds kLongestSlice{250};
constexpr milliseconds kShortestSlice{10};
constexpr int kLooks = 8;  // within the limit

std::atomic<bool> any_left_behind = false;

Error no_answer(const UnansweredRead& read, const AnswerLimit& limit) {
  if (read.mapped != nullptr) {
    if (const auto place = FaultGuard::place_of(read.mapped)) {
      return no_answer_error(place->path, place->offset, limit.each_read);
    }
  }
  return no_answer_error(read.path.empty() ? limit.path : read.path, read.offset, limit.each_read);
}

/// What the thread and its caller share.
struct Progress {
  std::shared_ptr<ReadWatch> watch = std::make_shared<ReadWatch>();
  bool may_be_joined = true;
  std::exception_ptr failure;
};

HelperThread start(const std::string& name, const Placement& placement, std::function<void()> step,
                   const std::shared_ptr<Progress>& progress) {
  // Threads have the watch of their maker: here, that of the work.
  const ReadWatch::Member member(progress->watch);
  return {name, placement, [step = std::move(step), progress](const std::stop_token&) {
            try {
              step();
            } catch (...) {
              progress->failure = std::current_exception();
            }
            progress->may_be_joined = !left_requests_here();
          }};
}

}  // namespace

bool with_answers(const AnswerLimit& limit, const std::string& name, const Placement& placement,
                  std::function<void()> step) {
  if (limit.each_read.count() == 0 || ReadWatch::of_this_thread()) {
    step();
    return true;
  }
  const auto progress = std::make_shared<Progress>();
  HelperThread thread = start(name, placement, std::move(step), progress);
  const milliseconds slice = std::clamp(limit.each_read / kLooks, kShortestSlice, kLongestSlice);
  while (!thread.ended_within(slice)) {
    const bool stopping = limit.stop.stop_requested();
    const auto read =
        progress->watch->look(stopping ? std::min(kStopGrace, limit.each_read) : limit.each_read);
    if (!read) continue;
    thread.abandon();
    any_left_behind = true;
    if (stopping) return false;
    throw no_answer(*read, limit);
  }
  if (progress->may_be_joined) {
    thread.stop();
  } else {
    thread.abandon();
    any_left_behind = true;
  }
  if (progress->failure) std::rethrow_exception(progress->failure);
  return true;
}

bool left_threads_behind() noexcept { return any_left_behind; }

}  // namespace forebay
