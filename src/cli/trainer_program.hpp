// forebay-train, the program behind `forebay train` and `forebay bench train`: apart, so that
// LibTorch is loaded by those who train and by no one else.
#pragma once

#include <string>
#include <vector>

namespace forebay {

/// Replaces this process by forebay-train with `arguments`. Throws unsupported where it is not
/// installed, io where it cannot be started.
[[noreturn]] void become_trainer(std::vector<std::string> arguments);

}  // namespace forebay
