// The sub-commands of `forebay`, one source file each.
//
// add_*_command() registers options and a callback; the callback runs inside CLI::App::parse() and
// reports failure by throwing Error. main() turns that into one line on stderr and an exit code:
//
//   0 fine      1 failed      2 the command line makes no sense (ErrorKind::usage and parse errors)
//
// Nothing here starts MPI: a command that needs it does so in its callback, so that the others
// start at once and run without a launcher.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace forebay {

void add_pack_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_verify_command(CLI::App& app);
void add_provenance_command(CLI::App& app);
void add_order_command(CLI::App& app);
void add_samples_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_bench_command(CLI::App& app);

/// Replaces this process by forebay-train, the program behind `forebay train` and `forebay bench
/// train`, with `arguments`: apart, so that LibTorch is loaded by those who train and by no one
/// else. Throws unsupported where it is not installed, io where it cannot be started.
[[noreturn]] void become_trainer(std::vector<std::string> arguments);

}  // namespace forebay
