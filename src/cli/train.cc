// `forebay train` is a program of its own, forebay-train, so that LibTorch is loaded by those who
// train and by no one else. This command finds it and becomes it.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "forebay-train";

bool is_program(const fs::path& path) {
  std::error_code failed;
  return fs::is_regular_file(path, failed) && ::access(path.c_str(), X_OK) == 0;
}

/// Beside this program (build tree), in libexec (installed), then wherever PATH leads.
std::vector<fs::path> places() {
  std::error_code failed;
  std::vector<fs::path> places;
  const fs::path own = fs::read_symlink("/proc/self/exe", failed).parent_path();
  if (!failed) places = {own, own.parent_path() / "libexec" / "forebay"};
  const char* path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    if (colon > 0) places.emplace_back(rest.substr(0, colon));
    rest.erase(0, colon + 1);
  }
  return places;
}

fs::path find_program() {
  for (const fs::path& place : places()) {
    if (is_program(place / kProgram)) return place / kProgram;
  }
  throw Error(ErrorKind::unsupported,
              fmt::format("this installation has no trainer: {} is not beside forebay, in libexec "
                          "or in PATH",
                          kProgram),
              "install LibTorch (Debian: libtorch-dev) and build Forebay with FOREBAY_TRAIN=ON");
}

[[noreturn]] void become(const fs::path& program, std::vector<std::string> arguments) {
  std::vector<char*> words;
  std::string name = program.string();
  words.push_back(name.data());
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  throw Error(ErrorKind::io, "cannot start: " + std::generic_category().message(errno),
              "check the installation", {.file = name});
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "train", "Train a network on a data set of labelled images; run it under mpirun");
  // Every argument belongs to the trainer, --help included.
  command->set_help_flag();
  command->prefix_command();
  command->callback([command] { become(find_program(), command->remaining()); });
}

}  // namespace forebay
