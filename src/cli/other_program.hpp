// Commands that are programs of their own: finding them, and becoming them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace forebay {

/// Where this executable lies; empty when the system does not tell.
std::filesystem::path own_folder();

bool is_program(const std::filesystem::path& path);

/// The folders of PATH.
std::vector<std::filesystem::path> search_path();

/// Replaces this process by `program` with `arguments`. Throws io where it cannot be started.
[[noreturn]] void become(const std::filesystem::path& program, std::vector<std::string> arguments);

}  // namespace forebay
