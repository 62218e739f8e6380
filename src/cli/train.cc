// `forebay train` is a program of its own; this command becomes it.
#include "cli/commands.hpp"
#include "cli/trainer_program.hpp"

namespace forebay {

void add_train_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "train", "Train a network on a data set of labelled images; run it under mpirun");
  // Every argument belongs to the trainer, --help included.
  command->set_help_flag();
  command->prefix_command();
  command->callback([command] { become_trainer(command->remaining()); });
}

}  // namespace forebay
