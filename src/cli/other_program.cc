#include "cli/other_program.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "forebay/error.hpp"

namespace forebay {

namespace fs = std::filesystem;

fs::path own_folder() {
  std::error_code failed;
  return fs::read_symlink("/proc/self/exe", failed).parent_path();
}

bool is_program(const fs::path& path) {
  std::error_code failed;
  return fs::is_regular_file(path, failed) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<fs::path> search_path() {
  std::vector<fs::path> folders;
  const char* path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    if (colon > 0) folders.emplace_back(rest.substr(0, colon));
    rest.erase(0, colon + 1);
  }
  return folders;
}

void become(const fs::path& program, std::vector<std::string> arguments) {
  std::vector<char*> words;
  std::string name = program.string();
  words.push_back(name.data());
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  throw Error(ErrorKind::io, "cannot start: " + std::generic_category().message(errno),
              "check the installation", {.file = name});
}

}  // namespace forebay
