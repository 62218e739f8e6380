// The table of storages (Storage of forebay/storage.hpp), for those who open and ask by path.
//
// A row is one file of this folder and one line of storages.cc; plug-ins (plugin.hpp) become rows
// when they are loaded. All of it is process-wide because what it stands for is: dlopen() loads a
// shared object once, and a data set is named by a text, which has no place for what it needs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

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

/// Whether `text`, a file or, on the operating system, a folder, lies on a disk or in the memory of
/// this machine. Throws as open_file() for what is not there.
bool is_on_local_disk(const std::string& text);

/// Whether the files that `text` names can be mapped, as far as that is known without opening them.
bool can_map(const std::string& text);

/// Does `step`, which reads the data set `path`, by with_answers() (storage/answers.hpp): io once a
/// read has had no answer for `timeout`; so `step` has to own all that it uses. Where the data set
/// is on storage whose code may never return, for which no call of ours tells, `step` as a whole
/// may take no longer; the error then names the storage, and `what` completes "no answer when it
/// was to ...". Throws what `step` throws.
void ask_storage(const std::string& path, std::chrono::milliseconds timeout, const char* what,
                 std::function<void()> step);

/// The same for a step that returns something.
template <typename Step, typename Answer = std::invoke_result_t<Step&>>
requires(!std::is_void_v<Answer>) Answer
    ask_storage(const std::string& path, std::chrono::milliseconds timeout, const char* what,
                Step step) {
  // Shared, since a storage that does not answer keeps its thread beyond this function.
  const auto answer = std::make_shared<std::optional<Answer>>();
  ask_storage(path, timeout, what,
              std::function<void()>(
                  [answer, step = std::move(step)]() mutable { answer->emplace(step()); }));
  return *std::move(*answer);
}

}  // namespace forebay
