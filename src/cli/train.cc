// `forebay train` is a program of its own; this command becomes it.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.hpp"
#include "forebay/error.hpp"
#include "program/run.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "forebay-train";

/// Beside this program (build tree), in libexec (installed), then wherever PATH leads.
std::vector<fs::path> places() {
  std::vector<fs::path> places = search_path();
  const fs::path own = own_folder();
  if (!own.empty()) {
    places.insert(places.begin(), {own, own.parent_path() / "libexec" / "forebay"});
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

}  // namespace

void become_trainer(std::vector<std::string> arguments) {
  become(find_program(), std::move(arguments));
}

void add_train_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "train", "Train a network on a data set of labelled images; run it under mpirun");
  // Every argument belongs to the trainer, --help included.
  command->set_help_flag();
  command->prefix_command();
  command->callback([command] { become_trainer(command->remaining()); });
}

}  // namespace forebay
