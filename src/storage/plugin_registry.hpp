// The plug-ins of this process, by scheme.
//
// They are process-wide because what they stand for is: dlopen() loads a shared object once, and a
// data set is named by a text, which has no place for the plug-ins that it needs.
#pragma once

#include <memory>
#include <string>

#include "storage/plugin.hpp"

namespace forebay {

/// The environment variable that names plug-ins.
inline constexpr const char* kPluginVariable = "FOREBAY_STORAGE_PLUGINS";

/// The plug-in that serves `scheme`; those of the environment are loaded for it. Throws not_found,
/// and what loading throws. Thread-safe.
std::shared_ptr<const StoragePlugin> plugin_for(const std::string& scheme);

/// What serves `scheme`, in words, for messages: waits for nobody, and loads nothing.
std::string name_of_plugin(const std::string& scheme);

}  // namespace forebay
