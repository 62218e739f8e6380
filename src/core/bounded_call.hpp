// Calls of code that may never return, because it is not ours: a thread makes them, and is left
// behind when it does not come back.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace forebay {

/// Calls `call` in a thread named `name`, and waits at most `limit` for it to return. Throws what
/// it throws. False: it has not returned, and goes on alone; so `call` owns all that it uses.
bool returns_within(std::chrono::milliseconds limit, const std::string& name,
                    std::function<void()> call);

}  // namespace forebay
