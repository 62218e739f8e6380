// The plug-ins of this process, by scheme.
//
// They are process-wide because what they stand for is: dlopen() loads a shared object once, and a
// data set is named by a text, which has no place for the plug-ins that it needs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "storage/plugin.hpp"

namespace forebay {

/// The environment variable that names plug-ins.
inline constexpr const char* kPluginVariable = "FOREBAY_STORAGE_PLUGINS";

/// The plug-in that serves `scheme`; those of the environment are loaded for it. Throws not_found,
/// and what loading throws. Thread-safe.
std::shared_ptr<const StoragePlugin> plugin_for(const std::string& scheme);

/// Does `step`, which reads the data set `path`. Where a plug-in serves that, its code may never
/// return: then a thread that can be left behind calls `step`, which so has to own all that it
/// uses; io, naming the plug-in, after `timeout`. Throws what `step` throws. `what` completes "no
/// answer when it was to ...".
void ask_storage(const std::string& path, std::chrono::milliseconds timeout, const char* what,
                 std::function<void()> step);

}  // namespace forebay
