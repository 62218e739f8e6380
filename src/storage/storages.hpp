// The table of storages (Storage of forebay/storage.hpp), for those who open and ask by path.
//
// A row is one file of this folder and one line of storages.cc; plug-ins (plugin.hpp) become rows
// when they are loaded. All of it is process-wide because what it stands for is: dlopen() loads a
// shared object once, and a data set is named by a text, which has no place for what it needs.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "forebay/storage.hpp"

namespace forebay {

/// The environment variable that names plug-ins.
inline constexpr const char* kPluginVariable = "FOREBAY_STORAGE_PLUGINS";

/// Loads those of the environment, where `scheme` is still not known. Throws what loading throws.
void load_plugins_for(const std::string& scheme);

/// The row of `scheme`, if there is one: waits for nobody, and loads nothing. Thread-safe.
std::optional<Storage> known_storage(const std::string& scheme);
/// Who serves `scheme`, in words; empty: nobody.
std::string who_serves(const std::string& scheme);
/// Takes out all rows but those of Forebay. Files that are open keep what they need.
void forget_added_storages();

/// Whether open_file() would find a file (on the operating system: anything) there. Throws io, and
/// not_found for a scheme that nobody serves.
bool storage_has(const std::string& text);

/// Whether the files that `text` names can be mapped, as far as that is known without opening them.
bool can_map(const std::string& text);

/// Does `step`, which reads the data set `path`. Where that is on storage whose code may never
/// return, a thread that can be left behind calls `step`, which so has to own all that it uses; io,
/// naming the storage, after `timeout`. Throws what `step` throws. `what` completes "no answer when
/// it was to ...".
void ask_storage(const std::string& path, std::chrono::milliseconds timeout, const char* what,
                 std::function<void()> step);

}  // namespace forebay
