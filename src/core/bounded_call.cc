#include "core/bounded_call.hpp"

#include <exception>
#include <memory>
#include <utility>

#include "core/placement.hpp"

namespace forebay {

bool returns_within(std::chrono::milliseconds limit, const std::string& name,
                    std::function<void()> call) {
  const auto failure = std::make_shared<std::exception_ptr>();
  HelperThread thread(name, Placement{}, [call = std::move(call), failure](const std::stop_token&) {
    try {
      call();
    } catch (...) {
      *failure = std::current_exception();
    }
  });
  if (!thread.ended_within(limit)) {
    thread.abandon();
    return false;
  }
  thread.stop();
  if (*failure) std::rethrow_exception(*failure);
  return true;
}

}  // namespace forebay
